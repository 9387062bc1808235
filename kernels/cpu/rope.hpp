// rope.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/rope.hpp>

namespace weft::kernels {
namespace detail {
template <class T> [[gnu::noinline]] void rope_row(size_t heads, size_t head_dim, T const* angles, T direction, T* x) {
  size_t const half = head_dim / 2;
  for (size_t h = 0; h < heads; ++h, x += head_dim)
    for (size_t i = 0; i < half; ++i) {
      T const c = angles[i], s = direction * angles[half + i], first = x[i], second = x[half + i];
      x[i] = fma(first, c, -(second * s));
      x[half + i] = fma(second, c, first * s);
    }
}
template <class T>
void rope_turn(cpu_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, T const* table, T direction, T* x) {
  parallel_for(on, tokens, (1 << 13) / (heads * head_dim + 1) + 1, [=](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      rope_row(heads, head_dim, table + static_cast<size_t>(positions[t]) * head_dim, direction, x + t * heads * head_dim);
  });
}
}  // namespace detail

template <class T> void rope(cpu_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, T const* table, T* x) {
  detail::rope_turn(on, tokens, heads, head_dim, positions, table, T(1), x);
}
template <class T>
void rope_backward(cpu_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, T const* table, T* dx) {
  detail::rope_turn(on, tokens, heads, head_dim, positions, table, T(-1), dx);
}
}  // namespace weft::kernels
