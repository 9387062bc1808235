// rope.cuh — rotary positions in Hugging Face's form; see rope.hpp. The table is f32. A position below 0 leaves its token as it is.
#pragma once
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
template <bool whole>
__global__ void rope_kernel(size_t count, size_t heads, size_t head_dim, i32 const* positions, f32 const* table, f32 direction, bf16* x) {
  size_t const at = size_t{blockIdx.x} * blockDim.x + threadIdx.x, half = head_dim / 2, eights = (half + 7) / 8;
  if (at >= count) return;
  size_t const head = at / eights, i = at % eights * 8;  // head: of all tokens
  i32 const position = positions[head / heads];
  if (position < 0) return;
  f32 const* const angles = table + static_cast<size_t>(position) * head_dim;
  bf16 *const low = x + head * head_dim, *const high = low + half;
  eight const c = load8<whole>(angles, i, half), s = load8<whole>(angles + half, i, half);
  eight a = load8<whole>(low, i, half), b = load8<whole>(high, i, half);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    f32 const sine = direction * s.at[e], first = a.at[e], second = b.at[e];
    a.at[e] = __fmaf_rn(first, c.at[e], -__fmul_rn(second, sine));
    b.at[e] = __fmaf_rn(second, c.at[e], __fmul_rn(first, sine));
  }
  store8<whole>(low, i, half, a);
  store8<whole>(high, i, half, b);
}
inline void rope_turn(cuda_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, f32 const* table, f32 direction,
                      bf16* x) {
  size_t const count = tokens * heads * ((head_dim / 2 + 7) / 8);
  if (!count) return;
  auto const run = whole_eights(head_dim / 2, table, x) ? rope_kernel<true> : rope_kernel<false>;
  run<<<blocks_of(count, 256), 256, 0, on.stream>>>(count, heads, head_dim, positions, table, direction, x);
  check_launch("rope");
}
}  // namespace detail

inline void rope(cuda_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions /*[tokens]*/,
                 f32 const* table /*[positions, head_dim]*/, bf16* x /*[tokens, heads, head_dim], in place*/) {
  detail::rope_turn(on, tokens, heads, head_dim, positions, table, 1, x);
}
inline void rope_backward(cuda_context& on, size_t tokens, size_t heads, size_t head_dim, i32 const* positions, f32 const* table,
                          bf16* dx /*[tokens, heads, head_dim], in place: turned back*/) {
  detail::rope_turn(on, tokens, heads, head_dim, positions, table, -1, dx);
}
}  // namespace weft::kernels
