// swiglu.cuh — out = silu(gate) * up; outputs may be the inputs.
#pragma once
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
__device__ inline f32 sigmoid(f32 x) { return __fdividef(1.0f, __fadd_rn(1.0f, exp_fast(-x))); }
__device__ inline eight gated(eight g, eight const& u) {  // silu(g) * u
#pragma unroll
  for (int e = 0; e < 8; ++e) g.at[e] = __fmul_rn(__fmul_rn(g.at[e], sigmoid(g.at[e])), u.at[e]);
  return g;
}

template <bool whole> __global__ void swiglu_kernel(size_t count, bf16 const* gate, bf16 const* up, bf16* out) {
  size_t const i = 8 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= count) return;
  store8<whole>(out, i, count, gated(load8<whole>(gate, i, count), load8<whole>(up, i, count)));
}
// d silu(g) / dg = s (1 + g (1 - s)), s the sigmoid of g
template <bool whole>
__global__ void swiglu_backward_kernel(size_t count, bf16 const* gate, bf16 const* up, bf16 const* dout, bf16* dgate, bf16* dup) {
  size_t const i = 8 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= count) return;
  eight g = load8<whole>(gate, i, count), u = load8<whole>(up, i, count);
  eight const d = load8<whole>(dout, i, count);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    f32 const s = sigmoid(g.at[e]), silu = g.at[e] * s;
    u.at[e] = d.at[e] * u.at[e] * (s * __fmaf_rn(g.at[e], 1.0f - s, 1.0f));
    g.at[e] = d.at[e] * silu;
  }
  store8<whole>(dgate, i, count, u);
  store8<whole>(dup, i, count, g);
}
}  // namespace detail

inline void swiglu(cuda_context& on, size_t count, bf16 const* gate, bf16 const* up, bf16* out) {
  if (!count) return;
  auto const run = whole_eights(count, gate, up, out) ? detail::swiglu_kernel<true> : detail::swiglu_kernel<false>;
  run<<<blocks_of(count, 2048), 256, 0, on.stream>>>(count, gate, up, out);
  check_launch("swiglu");
}
inline void swiglu_backward(cuda_context& on, size_t count, bf16 const* gate, bf16 const* up, bf16 const* dout, bf16* dgate /*written*/,
                            bf16* dup /*written*/) {
  if (!count) return;
  auto const run =
      whole_eights(count, gate, up, dout, dgate, dup) ? detail::swiglu_backward_kernel<true> : detail::swiglu_backward_kernel<false>;
  run<<<blocks_of(count, 2048), 256, 0, on.stream>>>(count, gate, up, dout, dgate, dup);
  check_launch("swiglu_backward");
}
}  // namespace weft::kernels
