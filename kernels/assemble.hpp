// assemble.hpp — a micro-batch laid out for the model: sequences end to end, no padding, and which of its rows predict response tokens.
// The last token of a sequence predicts nothing and is left out.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
struct sequences {            // where samples are read from, on one device
  i32 const* prompts;         // [prompts, prompt_room]
  i32 const* prompt_lengths;  // [prompts]
  i32 const* tokens;          // [samples, room]
  i32 const* lengths;         // [samples]
  size_t prompt_room, room, group, samples;
};
inline constexpr size_t batch_fields = 7;
struct batch {
  i32 *ids, *positions;  // [tokens]
  i32* cu_seqlens;       // [sequences + 1]
  // [rows]: packed token whose hidden state predicts, the id that came, its place in [sample, position], its sequence in the batch
  i32 *row, *target, *cell, *owner;
  // On a GPU, where the host does not know them, these are what there is room for: ids, rows and targets beyond the true ones are -1, and
  // sequences beyond them are empty.
  i32 tokens = 0, sequences = 0, rows = 0;
};
inline batch batch_in(i32* data /*[batch_fields, room]*/, size_t room) {
  return {data, data + room, data + 2 * room, data + 3 * room, data + 4 * room, data + 5 * room, data + 6 * room};
}

// The samples order[bin[0]], ..., order[bin[1] - 1], one behind the other; to: [batch_fields, room], room above their tokens
batch assemble(cpu_context& on, sequences const& from, i32 const* order, i32 const* bin /*[2]: begin, end*/, size_t room, i32* to);

// Rows of x from the used ones on become zero: no sum over all rows of a batch may see what was there before.
template <class T> void clear_tail(cpu_context& on, i32 const* used /*[1]*/, size_t rows, size_t width, T* x /*[rows, width]*/);

// What a loss needs of the rows of a batch, whatever runs them.
template <class F> void for_rows(cpu_context& on, size_t rows, F const& f /*(row)*/);  // in order
// sums[k] += f's k-th number of every row, in a fixed order
template <size_t N, class F> void sum_rows(cpu_context& on, size_t rows, F const& f /*(row, double sums[N])*/, double* sums /*[N]*/);
// out[s] = the sums of f over the rows whose owner is s; rows of one owner stand together, owners rise
template <size_t N, class T, class F> void sum_by_owner(cpu_context& on, size_t rows, i32 const* owner /*[rows]*/, size_t owners,
                                                        F const& f /*(row, T sums[N])*/, T* out /*[owners, N], written*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/assemble.hpp>
