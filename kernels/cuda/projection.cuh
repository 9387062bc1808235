// projection.cuh — what becomes of a head of a layer's projections before attention: bias, q/k norm, rotation, a row of a page. The arithmetic
// is that of add_bias, rmsnorm, rope and paged_write, in their order and with their roundings, so the bits are the same. Half a warp a head.
#pragma once
#include <weft/kernels/cuda/f8.cuh>
#include <weft/kernels/cuda/vector.cuh>
#include <weft/kernels/paged.hpp>

namespace weft::kernels {
struct projection {                      // of one layer: queries, keys and values beside each other
  bf16 const* qkv;                       // [rows, (heads + 2 kv_heads) * head_dim]
  bf16 const *q_bias, *k_bias, *v_bias;  // or null
  bf16 const *q_norm, *k_norm;           // [head_dim], or null
  f32 eps;
  f32 const* rope;  // [positions, head_dim]
  size_t heads;
};

namespace detail {
enum class projected { query, key, value };

// A row of a page from 16 lanes. The whole warp comes here, those that are not live write nothing.
__device__ inline void store_page_row(eight const& v, size_t lane, size_t head_dim, bf16* row, bool live) {
  if (live) store8<true>(row, 8 * lane, head_dim, v);
}
__device__ inline void store_page_row(eight const& v, size_t lane, size_t head_dim, f8e4m3* row, bool live) {
  float most = 0x1p-126f;
  unsigned finite = 1;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    float const size = 8 * lane < head_dim ? fabsf(v.at[e]) : 0;
    finite &= size < INFINITY;
    most = fmaxf(most, size);
  }
#pragma unroll
  for (int d = 8; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d)), finite &= __shfl_xor_sync(~0u, finite, d);
  float const scale = finite ? __fdiv_rn(most, 448.0f) : __uint_as_float(0x7fc00000u);
  if (live && 8 * lane < head_dim)
#pragma unroll
    for (int e = 0; e < 8; ++e) row[8 * lane + e] = f32_to_f8(__fdiv_rn(v.at[e], scale));
  if (live && lane == 0) *reinterpret_cast<float*>(row + head_dim) = scale;
}
// Lane `lane` of 16 gets elements 8 lane ... of head `head` of a kind, x [head_dim] of a token at `position`. The whole warp comes here.
__device__ inline eight finished(projection const& p, bf16 const* x, projected kind, size_t head, i32 position, size_t head_dim,
                                 size_t lane) {
  size_t const i = 8 * lane;
  eight v = load8<true>(x, i, head_dim);
  if (bf16 const* const bias = kind == projected::query ? p.q_bias : kind == projected::key ? p.k_bias : p.v_bias) {
    eight const b = load8<true>(bias + head * head_dim, i, head_dim);
#pragma unroll
    for (int e = 0; e < 8; ++e) v.at[e] = to_f32(to_bf16(__fadd_rn(v.at[e], b.at[e])));
  }
  if (p.q_norm) {
    f32 sum = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) sum = __fmaf_rn(v.at[e], v.at[e], sum);
    f32 const mean = __fdiv_rn(team_sum<16>(sum), static_cast<f32>(head_dim)), inverse = __frcp_rn(__fsqrt_rn(__fadd_rn(mean, p.eps)));
    if (kind != projected::value) {
      eight const w = load8<true>(kind == projected::query ? p.q_norm : p.k_norm, i, head_dim);
#pragma unroll
      for (int e = 0; e < 8; ++e) v.at[e] = to_f32(to_bf16(__fmul_rn(__fmul_rn(v.at[e], inverse), w.at[e])));
    }
  }
  size_t const half_lanes = head_dim / 16;
  eight other;
#pragma unroll
  for (int e = 0; e < 8; ++e) other.at[e] = __shfl_xor_sync(~0u, v.at[e], static_cast<int>(half_lanes));
  if (kind != projected::value && position >= 0 && i < head_dim) {
    f32 const* const angles = p.rope + static_cast<size_t>(position) * head_dim;
    size_t const pair = 8 * (lane % half_lanes);
    eight const c = load8<true>(angles, pair, head_dim / 2), s = load8<true>(angles + head_dim / 2, pair, head_dim / 2);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      v.at[e] = to_f32(to_bf16(lane < half_lanes ? __fmaf_rn(v.at[e], c.at[e], -__fmul_rn(other.at[e], s.at[e]))
                                                 : __fmaf_rn(v.at[e], c.at[e], __fmul_rn(other.at[e], s.at[e]))));
  }
  return v;
}
}  // namespace detail
}  // namespace weft::kernels
