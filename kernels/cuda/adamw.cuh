// adamw.cuh — AdamW over a flat range: f32 master weights and their bf16 copy, or bf16 weights alone; see adamw.hpp and moments.hpp.
//
// Step size and clip are read on the device: nothing waits for the host, and a captured graph serves every step. Stochastic rounding draws
// from Philox (position, step).
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
// A warp has a block of 256 parameters.
template <bool whole, moment_format format, bool mastered> __global__ void __launch_bounds__(256)
    adamw_kernel(size_t n, f32* master, bf16* w, std::byte* moments, f32 const* g, adamw_factors const* factors, gradient_use const* use,
                 adamw_step const* step) {
  if (use->skip) return;
  size_t const i = 8 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  moment_layout const l = moment_layout_of(format, n);
  if (format != moment_format::f8 && i >= n) return;
  eight const d8 = load8<whole>(g, i, n);
  eight w8 = mastered ? load8<whole>(master, i, n) : load8<whole>(w, i, n), m8, v8;
  if constexpr (format == moment_format::f32) {
    m8 = load8<whole>(reinterpret_cast<f32*>(moments), i, n), v8 = load8<whole>(reinterpret_cast<f32*>(moments + l.second), i, n);
  } else if constexpr (format == moment_format::bf16) {
    m8 = load8<whole>(reinterpret_cast<bf16*>(moments), i, n), v8 = load8<whole>(reinterpret_cast<bf16*>(moments + l.second), i, n);
  } else {  // the arrays are padded to 256 bytes
    uint2 m{}, v{};
    f32 m_scale = 0, v_scale = 0;
    if (i < n) {
      m = *reinterpret_cast<uint2 const*>(moments + i), v = *reinterpret_cast<uint2 const*>(moments + l.second + i);
      m_scale = reinterpret_cast<f32 const*>(moments + l.first_scales)[i / moment_block];
      v_scale = reinterpret_cast<f32 const*>(moments + l.second_scales)[i / moment_block];
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      u32 const x = (e < 4 ? m.x : m.y) >> (e % 4 * 8) & 255, y = (e < 4 ? v.x : v.y) >> (e % 4 * 8) & 255;
      m8.at[e] = __fmul_rn(decoded<4>(x & 127), x & 128 ? -m_scale : m_scale);
      v8.at[e] = __fmul_rn(decoded<5>(y), v_scale);
    }
  }
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
  u32 const place = static_cast<u32>(i / 8), high = static_cast<u32>(i / 8 >> 32), turn = static_cast<u32>(step->step);
  if constexpr (mastered) {
    store8<whole>(master, i, n, w8);
  } else {
    philox_words const r = philox({{place, high, turn, 2}}, 0);  // 16 bits a parameter
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      bf16 const narrow = to_bf16_stochastic(w8.at[e], r.word[e / 2] >> (e % 2 * 16) & 0xffff);
      w8.at[e] = to_f32(narrow);
    }
  }
  store8<whole>(w, i, n, w8);
  if constexpr (format == moment_format::f32) {
    store8<whole>(reinterpret_cast<f32*>(moments), i, n, m8), store8<whole>(reinterpret_cast<f32*>(moments + l.second), i, n, v8);
    return;
  }
  philox_words const draw[2] = {philox({{place, high, turn, 0}}, 0), philox({{place, high, turn, 1}}, 0)};  // 32 bits a parameter
  if constexpr (format == moment_format::bf16) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      u32 const random = draw[e / 4].word[e % 4];
      m8.at[e] = to_f32(to_bf16_stochastic(m8.at[e], random & 0xffff)), v8.at[e] = to_f32(to_bf16_stochastic(v8.at[e], random >> 16));
    }
    store8<whole>(reinterpret_cast<bf16*>(moments), i, n, m8), store8<whole>(reinterpret_cast<bf16*>(moments + l.second), i, n, v8);
  } else if constexpr (format == moment_format::f8) {
    f32 most_m = 0, most_v = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (i + e < n) most_m = fmaxf(most_m, fabsf(m8.at[e])), most_v = fmaxf(most_v, v8.at[e]);
    most_m = warp_max(most_m), most_v = warp_max(most_v);
    if (i >= n) return;
    uint2 m{}, v{};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      u32 const random = draw[e / 4].word[e % 4];
      u32 const x = most_m > 0 ? encoded<4>(__fdiv_rn(fabsf(m8.at[e]), most_m), random & 0xffff) | (m8.at[e] < 0 ? 128u : 0u) : 0;
      u32 const y = most_v > 0 ? encoded<5>(__fdiv_rn(v8.at[e], most_v), random >> 16) : 0;
      (e < 4 ? m.x : m.y) |= i + e < n ? x << (e % 4 * 8) : 0, (e < 4 ? v.x : v.y) |= i + e < n ? y << (e % 4 * 8) : 0;
    }
    *reinterpret_cast<uint2*>(moments + i) = m, *reinterpret_cast<uint2*>(moments + l.second + i) = v;
    if (threadIdx.x % 32 == 0) {
      reinterpret_cast<f32*>(moments + l.first_scales)[i / moment_block] = most_m;
      reinterpret_cast<f32*>(moments + l.second_scales)[i / moment_block] = most_v;
    }
  }
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
// moments: moment_layout_of(format, n); master: or null
inline void adamw(cuda_context& on, size_t n, moment_format format, f32* master, bf16* w /*[n], written*/, void* moments, f32 const* g,
                  adamw_step const* step /*[1]*/, gradient_use const* use /*[1]*/) {
  if (!n) return;
  auto* const factors = scratch_of<detail::adamw_factors>(on, 1, "adamw");
  detail::adamw_prepare<<<1, 1, 0, on.stream>>>(step, factors);
  auto const run = [&](auto kernel) {
    kernel<<<blocks_of(n, 2048), 256, 0, on.stream>>>(n, master, w, static_cast<std::byte*>(moments), g, factors, use, step);
  };
  auto const as = [&]<moment_format f>() {
    bool const whole = whole_eights(n, master, w, static_cast<std::byte const*>(moments), g);
    if (master) whole ? run(detail::adamw_kernel<true, f, true>) : run(detail::adamw_kernel<false, f, true>);
    else whole ? run(detail::adamw_kernel<true, f, false>) : run(detail::adamw_kernel<false, f, false>);
  };
  format == moment_format::f32    ? as.template operator()<moment_format::f32>()
  : format == moment_format::bf16 ? as.template operator()<moment_format::bf16>()
                                  : as.template operator()<moment_format::f8>();
  check_launch("adamw");
}
inline void clipped_adamw(cuda_context& on, size_t n, adamw_options const& o, f32 const* g, i32 const* counted, f32 const* lr, bf16* w,
                          f32* master, void* moments, i32* steps, f32* norm) {
  static_assert(sizeof(detail::clipped_step) <= 256);
  auto* const s = scratch_of<detail::clipped_step>(on, 1, "clipped_adamw");
  cuda_context rest = on;
  rest.scratch = static_cast<char*>(on.scratch) + 256, rest.scratch_bytes = on.scratch_bytes - 256;
  sum_of_squares(rest, n, g, &s->squares);
  detail::clipped_adamw_prepare<<<1, 1, 0, on.stream>>>(o, counted, lr, s, steps, norm);
  adamw(rest, n, o.moments, master, w, moments, g, &s->step, &s->use);
}
}  // namespace weft::kernels
