// decode_layer.cuh — what a decode step does between two matrix products, in one kernel each: few rows are a matter of launches, not of
// bytes. The arithmetic is that of add_bias, rmsnorm, rope, paged_write and swiglu, in their order and with their roundings, so the bits
// are the same.
#pragma once
#include <weft/kernels/cuda/paged.cuh>
#include <weft/kernels/cuda/swiglu.cuh>

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
__device__ inline void store_page_row(eight const& v, size_t lane, size_t head_dim, bf16* row) { store8<true>(row, 8 * lane, head_dim, v); }
__device__ inline void store_page_row(eight const& v, size_t lane, size_t head_dim, f8e4m3* row) {
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
  if (8 * lane < head_dim)
#pragma unroll
    for (int e = 0; e < 8; ++e) row[8 * lane + e] = f32_to_f8(__fdiv_rn(v.at[e], scale));
  if (lane == 0) *reinterpret_cast<float*>(row + head_dim) = scale;
}
// Half a warp for each head of a row, whether of queries, keys or values.
template <class Kv> __global__ void __launch_bounds__(256)
    finish_projection(paged_pool<Kv> pool, size_t layer, size_t rows, projection p, i32 const* sequence, i32 const* position, bf16* q) {
  next_may_start();
  wait_for_previous();
  size_t const head_dim = pool.head_dim, all = p.heads + 2 * pool.kv_heads, lane = threadIdx.x % 16;
  size_t const place = size_t{blockIdx.x} * 16 + threadIdx.x / 16, at = place < rows * all ? place : rows * all - 1;
  bool const live = place < rows * all;
  size_t const row = at / all, h = at % all, i = 8 * lane;
  int const part = h < p.heads ? 0 : h < p.heads + pool.kv_heads ? 1 : 2;
  size_t const head = part == 0 ? h : part == 1 ? h - p.heads : h - p.heads - pool.kv_heads;
  eight v = load8<true>(p.qkv + at * head_dim, i, head_dim);
  if (bf16 const* const bias = part == 0 ? p.q_bias : part == 1 ? p.k_bias : p.v_bias) {
    eight const b = load8<true>(bias + head * head_dim, i, head_dim);
#pragma unroll
    for (int e = 0; e < 8; ++e) v.at[e] = to_f32(to_bf16(__fadd_rn(v.at[e], b.at[e])));
  }
  if (p.q_norm) {  // the whole warp goes along
    f32 sum = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) sum = __fmaf_rn(v.at[e], v.at[e], sum);
    f32 const mean = __fdiv_rn(team_sum<16>(sum), static_cast<f32>(head_dim)), inverse = __frcp_rn(__fsqrt_rn(__fadd_rn(mean, p.eps)));
    if (part < 2) {
      eight const w = load8<true>(part == 0 ? p.q_norm : p.k_norm, i, head_dim);
#pragma unroll
      for (int e = 0; e < 8; ++e) v.at[e] = to_f32(to_bf16(__fmul_rn(__fmul_rn(v.at[e], inverse), w.at[e])));
    }
  }
  i32 const pos = position[row], seq = sequence[row];
  size_t const half_lanes = head_dim / 16;
  eight other;
#pragma unroll
  for (int e = 0; e < 8; ++e) other.at[e] = __shfl_xor_sync(~0u, v.at[e], static_cast<int>(half_lanes));
  if (part < 2 && pos >= 0 && i < head_dim) {
    f32 const* const angles = p.rope + static_cast<size_t>(pos) * head_dim;
    size_t const pair = 8 * (lane % half_lanes);
    eight const c = load8<true>(angles, pair, head_dim / 2), s = load8<true>(angles + head_dim / 2, pair, head_dim / 2);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      v.at[e] = to_f32(to_bf16(lane < half_lanes ? __fmaf_rn(v.at[e], c.at[e], -__fmul_rn(other.at[e], s.at[e]))
                                                 : __fmaf_rn(v.at[e], c.at[e], __fmul_rn(other.at[e], s.at[e]))));
  }
  if (part == 0) {
    if (live) store8<true>(q + (row * p.heads + head) * head_dim, i, head_dim, v);
  }
  // keys and values: the page is that of the row; a dead row, and a half warp of queries, goes along with a place that is not written
  bool const writes = live && part > 0 && seq >= 0 && pos >= 0;
  size_t const page =
      writes ? static_cast<size_t>(pool.table[static_cast<size_t>(seq) * pool.table_width + static_cast<size_t>(pos) / page_tokens]) : 0;
  Kv* const to = pool.data + ((((page * pool.layers + layer) * 2 + static_cast<size_t>(part == 2)) * pool.kv_heads + head) * page_tokens +
                              static_cast<size_t>(pos < 0 ? 0 : pos) % page_tokens) *
                                 page_row_elements<Kv>(head_dim);
  if constexpr (std::is_same_v<Kv, bf16>) {
    if (writes) store_page_row(v, lane, head_dim, to);
  } else {
    __shared__ __align__(16) f8e4m3 nowhere[16][132];
    store_page_row(v, lane, head_dim, writes ? to : nowhere[threadIdx.x / 16]);
  }
}
static __global__ void __launch_bounds__(256) swiglu_beside_kernel(size_t rows, size_t inner, bf16 const* gate_up, bf16* out) {
  next_may_start();
  wait_for_previous();
  size_t const at = size_t{blockIdx.x} * 256 + threadIdx.x, eights = inner / 8;
  if (at >= rows * eights) return;
  size_t const row = at / eights, i = at % eights * 8;
  bf16 const* const x = gate_up + row * 2 * inner;
  eight g = load8<true>(x, i, inner), u = load8<true>(x + inner, i, inner);
#pragma unroll
  for (int e = 0; e < 8; ++e) g.at[e] = __fmul_rn(__fmul_rn(g.at[e], sigmoid(g.at[e])), u.at[e]);
  store8<true>(out + row * inner, i, inner, g);
}
}  // namespace detail

// Bias, q/k norm and rotation of a layer's projections; keys and values go into their pages, queries [rows, heads, head_dim] to q.
// head_dim 64 or 128.
template <class Kv> void finish_projections(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows, projection const& p,
                                            i32 const* sequence, i32 const* position, bf16* q) {
  if (!rows) return;
  launch_chained(on, "finish_projections", detail::finish_projection<Kv>, blocks_of(rows * (p.heads + 2 * pool.kv_heads), 16), 256, 0, 1, pool,
                 layer, rows, p, sequence, position, q);
}
// out [rows, inner] = silu(gate) * up of gate_up [rows, 2 inner]; inner a multiple of 8
inline void swiglu_beside(cuda_context& on, size_t rows, size_t inner, bf16 const* gate_up, bf16* out) {
  if (!rows) return;
  launch_chained(on, "swiglu", detail::swiglu_beside_kernel, blocks_of(rows * (inner / 8), 256), 256, 0, 1, rows, inner, gate_up, out);
}
}  // namespace weft::kernels
