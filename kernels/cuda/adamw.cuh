// adamw.cuh — AdamW over a flat range: f32 master weights, their bf16 copy, moments in f32 or bf16; see adamw.hpp.
//
// Step size and clip are read on the device: nothing waits for the host, and a captured graph serves every step. bf16 moments are rounded
// stochastically (Philox: seed, step, position), because 1 - beta2 is below half a unit of bf16.
#pragma once
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/cuda/vector.cuh>
#include <weft/kernels/philox.hpp>

namespace weft::kernels {
// What one step does with the gradient; written by clip_gradient.
struct gradient_use {
  f32 scale;    // of every gradient
  i32 skip;     // 1: the norm is not finite, nothing is changed
  double norm;  // before the clip
};

namespace detail {
inline constexpr unsigned norm_leaves = 1056, leaf_threads = 256;

__device__ inline double block_sum(double x) {  // 256 threads; thread 0 gets the sum
  __shared__ double part[leaf_threads / 32];
  for (int d = 16; d; d /= 2) x += __shfl_down_sync(~0u, x, static_cast<unsigned>(d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  for (unsigned w = 1; threadIdx.x == 0 && w < leaf_threads / 32; ++w) x += part[w];
  return x;
}
static __global__ void __launch_bounds__(leaf_threads) square_leaves(size_t n, f32 const* x, double* leaf /*[norm_leaves]*/) {
  double sum = 0;
  for (size_t i = 8 * (size_t{blockIdx.x} * leaf_threads + threadIdx.x); i < n; i += size_t{8} * leaf_threads * norm_leaves) {
    eight v;
    if (i + 8 <= n && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) v = load8<true>(x, i, n);
    else v = load8<false>(x, i, n);
#pragma unroll
    for (int e = 0; e < 8; ++e) sum = __fma_rn(static_cast<double>(v.at[e]), static_cast<double>(v.at[e]), sum);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) leaf[blockIdx.x] = sum;
}
static __global__ void __launch_bounds__(leaf_threads) sum_leaves(double const* leaf, double* out) {
  double sum = 0;
  for (unsigned l = threadIdx.x; l < norm_leaves; l += leaf_threads) sum += leaf[l];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}
static __global__ void clip_kernel(double const* squares, f32 const* max_norm, f32 gradient_scale, gradient_use* use, i32* skipped) {
  double const norm = ::sqrt(*squares) * static_cast<double>(gradient_scale), most = *max_norm;
  bool const finite = isfinite(norm);
  double const clip = most > 0 && norm > most ? most / (norm + 1e-6) : 1;
  *use = {static_cast<f32>(clip * static_cast<double>(gradient_scale)), !finite, norm};
  if (!finite) ++*skipped;
}

struct adamw_factors {
  f32 keep, rate, root, eps, beta1, rest1, beta2, rest2;
};
static __global__ void adamw_prepare(adamw_step const* step, adamw_factors* to) {
  adamw_step const s = *step;
  to->keep = static_cast<f32>(1 - s.lr * s.weight_decay);
  to->rate = static_cast<f32>(s.lr / (1 - ::pow(s.beta1, static_cast<double>(s.step))));
  to->root = static_cast<f32>(1 / ::sqrt(1 - ::pow(s.beta2, static_cast<double>(s.step))));
  to->eps = static_cast<f32>(s.eps);
  to->beta1 = static_cast<f32>(s.beta1), to->rest1 = static_cast<f32>(1 - s.beta1);
  to->beta2 = static_cast<f32>(s.beta2), to->rest2 = static_cast<f32>(1 - s.beta2);
}
// x to one of its two bf16 neighbours, up with the probability of its place between them
__device__ inline bf16 to_bf16_stochastic(f32 x, u32 random16) {
  u32 const bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return to_bf16(x);
  return {static_cast<std::uint16_t>((bits + random16) >> 16)};
}
template <bool whole, class S> __global__ void __launch_bounds__(256)
    adamw_kernel(size_t n, f32* master, bf16* w, S* m, S* v, f32 const* g, adamw_factors const* factors, gradient_use const* use,
                 adamw_step const* step, u64 seed) {
  if (use->skip) return;
  size_t const i = 8 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= n) return;
  eight const d8 = load8<whole>(g, i, n);
  eight w8 = load8<whole>(master, i, n), m8 = load8<whole>(m, i, n), v8 = load8<whole>(v, i, n);
  adamw_factors const f = *factors;
  f32 const scale = use->scale;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    f32 const d = __fmul_rn(d8.at[e], scale);
    m8.at[e] = __fmaf_rn(m8.at[e], f.beta1, __fmul_rn(d, f.rest1));
    v8.at[e] = __fmaf_rn(v8.at[e], f.beta2, __fmul_rn(__fmul_rn(d, d), f.rest2));
    f32 const change = __fmul_rn(f.rate, __fdiv_rn(m8.at[e], __fmaf_rn(__fsqrt_rn(v8.at[e]), f.root, f.eps)));
    w8.at[e] = __fmaf_rn(w8.at[e], f.keep, -change);
  }
  store8<whole>(master, i, n, w8);
  store8<whole>(w, i, n, w8);
  if constexpr (std::is_same_v<S, bf16>) {
    u32 const block = static_cast<u32>(i / 8), high = static_cast<u32>(i / 8 >> 32), turn = static_cast<u32>(step->step);
    philox_words const r = philox({{block, high, turn, 0}}, seed);  // 16 bits a parameter, for both moments
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      u32 const random16 = r.word[e / 2] >> (e % 2 * 16) & 0xffff;
      m8.at[e] = to_f32(to_bf16_stochastic(m8.at[e], random16));
      v8.at[e] = to_f32(to_bf16_stochastic(v8.at[e], random16));
    }
  }
  store8<whole>(m, i, n, m8);
  store8<whole>(v, i, n, v8);
}
}  // namespace detail

// in double, by a tree that depends on n alone
inline void sum_of_squares(cuda_context& on, size_t n, f32 const* x, double* out /*[1]*/) {
  double* const leaf = scratch_of<double>(on, detail::norm_leaves, "sum_of_squares");
  detail::square_leaves<<<detail::norm_leaves, detail::leaf_threads, 0, on.stream>>>(n, x, leaf);
  detail::sum_leaves<<<1, detail::leaf_threads, 0, on.stream>>>(leaf, out);
  check_launch("sum_of_squares");
}
// Gradients times gradient_scale (a mean), then clipped to max_norm (0: not at all); a norm that is not finite skips the step and is counted.
inline void clip_gradient(cuda_context& on, double const* squares /*[1]*/, f32 const* max_norm /*[1]*/, f32 gradient_scale,
                          gradient_use* use /*[1]*/, i32* skipped /*[1], added*/) {
  detail::clip_kernel<<<1, 1, 0, on.stream>>>(squares, max_norm, gradient_scale, use, skipped);
  check_launch("clip_gradient");
}
namespace detail {
struct clipped_step {  // at the start of the scratch, beside what the kernels between use
  double squares;
  gradient_use use;
  adamw_step step;
};
static __global__ void clipped_adamw_prepare(adamw_options o, i32 const* counted, f32 const* lr, clipped_step* s, i32* steps, f32* norm) {
  double const size = ::sqrt(s->squares);
  *norm = static_cast<f32>(size);
  bool const skip = *counted == 0 || !isfinite(size);
  if (!skip) ++*steps;
  s->use = {static_cast<f32>(clip_coefficient(size, o.clip_grad)), skip, size};
  s->step = {static_cast<double>(*lr), o.beta1, o.beta2, o.eps, o.weight_decay, *steps};
}
}  // namespace detail
template <class S> void adamw(cuda_context& on, size_t n, f32* master, bf16* w /*[n], written*/, S* m, S* v, f32 const* g,
                              adamw_step const* step /*[1]*/, gradient_use const* use /*[1]*/, u64 seed) {
  if (!n) return;
  auto* const factors = scratch_of<detail::adamw_factors>(on, 1, "adamw");
  detail::adamw_prepare<<<1, 1, 0, on.stream>>>(step, factors);
  auto const run = whole_eights(n, master, w, m, v, g) ? detail::adamw_kernel<true, S> : detail::adamw_kernel<false, S>;
  run<<<blocks_of(n, 2048), 256, 0, on.stream>>>(n, master, w, m, v, g, factors, use, step, seed);
  check_launch("adamw");
}
template <class S> void clipped_adamw(cuda_context& on, size_t n, adamw_options const& o, f32 const* g, i32 const* counted, f32 const* lr,
                                      bf16* w, f32* master, S* m, S* v, i32* steps, f32* norm) {
  static_assert(sizeof(detail::clipped_step) <= 256);
  auto* const s = scratch_of<detail::clipped_step>(on, 1, "clipped_adamw");
  cuda_context rest = on;
  rest.scratch = static_cast<char*>(on.scratch) + 256, rest.scratch_bytes = on.scratch_bytes - 256;
  sum_of_squares(rest, n, g, &s->squares);
  detail::clipped_adamw_prepare<<<1, 1, 0, on.stream>>>(o, counted, lr, s, steps, norm);
  adamw(rest, n, master, w, m, v, g, &s->step, &s->use, 0);
}
}  // namespace weft::kernels
