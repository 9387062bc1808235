// rope.hpp — rotary positions in Hugging Face's form (rotate_half): the pair (x[i], x[i + head_dim/2]) turns by angle i of the position.
// table: [positions, head_dim], a row holds the cosines of head_dim/2 angles, then their sines.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void rope(cpu_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions /*[tokens]*/,
                             T const* table, T* x /*[tokens, heads, head_dim], in place*/);
template <class T> void rope_backward(cpu_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, T const* table,
                                      T* dx /*[tokens, heads, head_dim], in place: turned back*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/rope.hpp>
