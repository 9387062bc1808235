// assemble.hpp (cpu)
#pragma once
#include <weft/kernels/assemble.hpp>

namespace weft::kernels {
inline batch assemble(cpu_context&, sequences const& from, i32 const* order, i32 const* bin, size_t room, i32* to) {
  batch b = batch_in(to, room);
  b.cu_seqlens[0] = 0;
  for (i32 k = 0; k < bin[1] - bin[0]; ++k) {
    size_t const s = static_cast<size_t>(order[bin[0] + k]), p = s / from.group;
    i32 const prompt = from.prompt_lengths[p], response = from.lengths[s];
    for (i32 t = 0; t < prompt + response - 1; ++t) {
      if (t >= prompt - 1) {
        size_t const cell = s * from.room + static_cast<size_t>(t - prompt + 1);
        b.row[b.rows] = b.tokens;
        b.target[b.rows] = from.tokens[cell];
        b.owner[b.rows] = k;
        b.cell[b.rows++] = static_cast<i32>(cell);
      }
      b.positions[b.tokens] = t;
      b.ids[b.tokens++] = t < prompt ? from.prompts[p * from.prompt_room + static_cast<size_t>(t)]
                                     : from.tokens[s * from.room + static_cast<size_t>(t - prompt)];
    }
    b.cu_seqlens[++b.sequences] = b.tokens;
  }
  return b;
}
template <class T> void clear_tail(cpu_context&, i32 const* used, size_t rows, size_t width, T* x) {
  for (size_t i = static_cast<size_t>(*used) * width; i < rows * width; ++i) x[i] = T{};
}
template <class F> void for_rows(cpu_context&, size_t rows, F const& f) {
  for (size_t r = 0; r < rows; ++r) f(r);
}
template <size_t N, class F> void sum_rows(cpu_context&, size_t rows, F const& f, double* sums) {
  for (size_t r = 0; r < rows; ++r) f(r, sums);
}
template <size_t N, class T, class F> void sum_by_owner(cpu_context&, size_t rows, i32 const* owner, size_t owners, F const& f, T* out) {
  for (size_t i = 0; i < N * owners; ++i) out[i] = 0;
  for (size_t r = 0; r < rows; ++r) f(r, out + N * static_cast<size_t>(owner[r]));
}
}  // namespace weft::kernels
