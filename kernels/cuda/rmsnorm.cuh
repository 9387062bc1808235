// rmsnorm.cuh — y = x * inverse_rms * weight, inverse_rms = 1 / sqrt(mean(x^2) + eps). A row belongs to half a warp (width up to 128), a
// warp (up to 1024) or a block, and stays in its registers, so memory is read once.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/elementwise.cuh>

namespace weft::kernels {
namespace detail {
inline constexpr unsigned norm_threads = 256;
// blocks of the backward: each sums its rows of dweight
constexpr unsigned norm_backward_blocks(int groups) { return groups == 1 ? 528 : 264; }

// One row, by a team of threads: y = rmsnorm(x + residual). residual may be null, sum_out (where x + residual goes) and inverse_rms too. All
// threads of a team's warps come here; those that are not live write nothing. w: a thread's part of the weight, as load_norm_weight has it.
template <int team, int groups, bool whole>
__device__ inline void load_norm_weight(size_t width, size_t lane, bf16 const* weight, eight (&w)[groups]) {
#pragma unroll
  for (int g = 0; g < groups; ++g) w[g] = load8<whole>(weight, 8 * (lane + team * g), width);
}
template <int team, int groups, bool whole> __device__ inline void norm_row(size_t width, size_t lane, bf16 const* residual, bf16 const* x,
                                                                            bf16* sum_out, eight const (&w)[groups], f32 eps, bf16* y,
                                                                            f32* inverse_rms = nullptr, bool live = true) {
  eight v[groups];
  f32 sum = 0;
#pragma unroll
  for (int g = 0; g < groups; ++g) v[g] = load8<whole>(x, 8 * (lane + team * g), width);
  if (residual) {
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      eight const r = load8<whole>(residual, 8 * (lane + team * g), width);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[g].at[e] = to_f32(to_bf16(__fadd_rn(v[g].at[e], r.at[e])));
      if (live && sum_out) store8<whole>(sum_out, 8 * (lane + team * g), width, v[g]);
    }
  }
#pragma unroll
  for (int g = 0; g < groups; ++g)
#pragma unroll
    for (int e = 0; e < 8; ++e) sum = __fmaf_rn(v[g].at[e], v[g].at[e], sum);
  f32 const mean = __fdiv_rn(team_sum<team>(sum), static_cast<f32>(width)), inverse = __frcp_rn(__fsqrt_rn(__fadd_rn(mean, eps)));
#pragma unroll
  for (int g = 0; g < groups; ++g) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[g].at[e] = __fmul_rn(__fmul_rn(v[g].at[e], inverse), w[g].at[e]);
    if (live) store8<whole>(y, 8 * (lane + team * g), width, v[g]);
  }
  if (inverse_rms && live && lane == 0) *inverse_rms = inverse;
}
template <int team, int groups, bool whole> __global__ void __launch_bounds__(norm_threads)
    rmsnorm_kernel(size_t rows, size_t width, bf16 const* residual, bf16 const* x, bf16* sum_out, bf16 const* weight, f32 eps, bf16* y,
                   f32* inverse_rms) {
  next_may_start();
  wait_for_previous();
  size_t const lane = threadIdx.x % team, place = size_t{blockIdx.x} * (norm_threads / team) + threadIdx.x / team;
  bool const live = team == norm_threads || place < rows;  // the others go along with their warp
  size_t const row = live ? place : rows - 1, at = row * width;
  eight w[groups];
  load_norm_weight<team, groups, whole>(width, lane, weight, w);
  norm_row<team, groups, whole>(width, lane, residual ? residual + at : nullptr, x + at, sum_out + at, w, eps, y + at,
                                inverse_rms ? inverse_rms + row : nullptr, live);
}

// with n = x inverse and d = dy weight: dx += inverse (d - n mean(d n)); part[block] = this block's rows of dy n, summed
template <int team, int groups, bool whole> __global__ void __launch_bounds__(norm_threads, groups < 4 ? 2 : 1)
    rmsnorm_backward_kernel(size_t rows, size_t width, bf16 const* x, bf16 const* weight, f32 const* inverse_rms, bf16 const* dy, bf16* dx,
                            f32* part /*[blocks, width]*/) {
  constexpr int teams = norm_threads / team;
  size_t const lane = threadIdx.x % team;
  eight dw[groups] = {};
  for (size_t first = size_t{blockIdx.x} * teams; first < rows; first += size_t{gridDim.x} * teams) {
    size_t const place = first + threadIdx.x / team;
    bool const live = teams == 1 || place < rows;
    size_t const row = live ? place : rows - 1;
    f32 const inverse = inverse_rms[row];
    eight n[groups], d[groups];
    f32 sum = 0;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      size_t const i = 8 * (lane + team * g);
      n[g] = load8<whole>(x + row * width, i, width);
      d[g] = load8<whole>(dy + row * width, i, live ? width : 0);
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      eight const w = load8<whole>(weight, 8 * (lane + team * g), width);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        n[g].at[e] *= inverse;
        dw[g].at[e] = __fmaf_rn(d[g].at[e], n[g].at[e], dw[g].at[e]);
        d[g].at[e] *= w.at[e];
        sum = __fmaf_rn(d[g].at[e], n[g].at[e], sum);
      }
    }
    f32 const mean = team_sum<team>(sum) / static_cast<f32>(width);
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      size_t const i = 8 * (lane + team * g);
      eight old = load8<whole>(dx + row * width, i, width);
#pragma unroll
      for (int e = 0; e < 8; ++e) old.at[e] = __fmaf_rn(inverse, __fmaf_rn(-mean, n[g].at[e], d[g].at[e]), old.at[e]);
      if (live) store8<whole>(dx + row * width, i, width, old);
    }
  }
  f32* const to = part + blockIdx.x * width;
  if constexpr (teams == 1) {
#pragma unroll
    for (int g = 0; g < groups; ++g) store8<false>(to, 8 * (lane + team * g), width, dw[g]);
  } else {
    __shared__ f32 merged[teams][8 * team];  // one group of columns at a time
    for (int g = 0; g < groups; ++g) {
      __syncthreads();
#pragma unroll
      for (int h = 0; h < groups; ++h)
        if (h == g)
#pragma unroll
          for (int e = 0; e < 8; ++e) merged[threadIdx.x / team][8 * lane + e] = dw[h].at[e];
      __syncthreads();
      for (size_t c = threadIdx.x; c < 8 * team; c += norm_threads) {
        f32 sum = 0;
        for (int t = 0; t < teams; ++t) sum += merged[t][c];
        if (size_t const i = 8 * team * g + c; i < width) to[i] = sum;
      }
    }
  }
}

// calls f(team, groups) with the constants for a width
template <int n> struct constant {
  static constexpr int value = n;
};
template <class F> void norm_shape(size_t width, F const& f) {
  if (width <= 128) f(constant<16>{}, constant<1>{});
  else if (width <= 256) f(constant<32>{}, constant<1>{});
  else if (width <= 1024) f(constant<32>{}, constant<4>{});
  else if (width <= 2048) f(constant<256>{}, constant<1>{});
  else if (width <= 4096) f(constant<256>{}, constant<2>{});
  else if (width <= 8192) f(constant<256>{}, constant<4>{});
  else if (width <= 16384) f(constant<256>{}, constant<8>{});
  else throw std::runtime_error("rmsnorm: width " + std::to_string(width) + " is above 16384");
}
inline void rmsnorm(cuda_context& on, size_t rows, size_t width, bf16 const* residual, bf16 const* x, bf16* sum_out, bf16 const* weight,
                    f32 eps, bf16* y, f32* inverse_rms) {
  if (!rows || !width) return;
  norm_shape(width, [&](auto team, auto groups) {
    constexpr int t = decltype(team)::value, g = decltype(groups)::value;
    auto const run = whole_eights(width, x, residual, sum_out, weight, y) ? rmsnorm_kernel<t, g, true> : rmsnorm_kernel<t, g, false>;
    launch_chained(on, "rmsnorm", run, blocks_of(rows, norm_threads / t), norm_threads, 0, 1, rows, width, residual, x, sum_out, weight,
                   eps, y, inverse_rms);
  });
}
}  // namespace detail

inline void rmsnorm(cuda_context& on, size_t rows, size_t width, bf16 const* x /*[rows, width]*/, bf16 const* weight /*[width]*/, f32 eps,
                    bf16* y /*[rows, width], may be x*/, f32* inverse_rms /*[rows] or null*/) {
  detail::rmsnorm(on, rows, width, nullptr, x, nullptr, weight, eps, y, inverse_rms);
}
// sum = residual + x, then y = rmsnorm(sum): the bits of add() and rmsnorm(). sum [rows, width] may be residual.
inline void add_rmsnorm(cuda_context& on, size_t rows, size_t width, bf16 const* x, bf16 const* residual, bf16* sum, bf16 const* weight,
                        f32 eps, bf16* y, f32* inverse_rms /*[rows] or null*/) {
  detail::rmsnorm(on, rows, width, x, residual, sum, weight, eps, y, inverse_rms);
}
inline void add_rmsnorm(cuda_context& on, size_t rows, size_t width, bf16 const* x, bf16* sum /*in place*/, bf16 const* weight, f32 eps,
                        bf16* y, f32* inverse_rms /*[rows] or null*/) {
  add_rmsnorm(on, rows, width, x, sum, sum, weight, eps, y, inverse_rms);
}
inline void rmsnorm_backward(cuda_context& on, size_t rows, size_t width, bf16 const* x, bf16 const* weight, f32 const* inverse_rms,
                             bf16 const* dy, bf16* dx /*[rows, width], added*/, f32* dweight /*[width], added*/) {
  if (!rows || !width) return;
  detail::norm_shape(width, [&](auto team, auto groups) {
    constexpr int t = decltype(team)::value, g = decltype(groups)::value;
    unsigned const wanted = blocks_of(rows, detail::norm_threads / t), most = detail::norm_backward_blocks(g),
                   blocks = wanted < most ? wanted : most;
    f32* const part = scratch_of<f32>(on, blocks * width, "rmsnorm_backward");
    auto const run =
        whole_eights(width, x, weight, dy, dx) ? detail::rmsnorm_backward_kernel<t, g, true> : detail::rmsnorm_backward_kernel<t, g, false>;
    run<<<blocks, detail::norm_threads, 0, on.stream>>>(rows, width, x, weight, inverse_rms, dy, dx, part);
    detail::sum_parts(on, blocks, width, part, dweight);
  });
  check_launch("rmsnorm_backward");
}
}  // namespace weft::kernels
