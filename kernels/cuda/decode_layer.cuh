// decode_layer.cuh — what a decode step does between two matrix products, in one kernel each: few rows are a matter of launches, not of
// bytes.
#pragma once
#include <weft/kernels/cuda/paged.cuh>
#include <weft/kernels/cuda/swiglu.cuh>

namespace weft::kernels {
namespace detail {
// Half a warp for each head of a row, whether of queries, keys or values.
template <class Kv> __global__ void __launch_bounds__(256)
    finish_projection(paged_pool<Kv> pool, size_t layer, size_t rows, projection p, i32 const* sequence, i32 const* position, bf16* q) {
  next_may_start();
  wait_for_previous();
  size_t const head_dim = pool.head_dim, all = p.heads + 2 * pool.kv_heads, lane = threadIdx.x % 16;
  size_t const place = size_t{blockIdx.x} * 16 + threadIdx.x / 16, at = place < rows * all ? place : rows * all - 1;
  bool const live = place < rows * all;
  size_t const row = at / all, h = at % all;
  projected const kind = h < p.heads ? projected::query : h < p.heads + pool.kv_heads ? projected::key : projected::value;
  size_t const head = kind == projected::query ? h : (h - p.heads) % pool.kv_heads;
  i32 const pos = position[row], seq = sequence[row];
  eight const v = finished(p, p.qkv + at * head_dim, kind, head, pos, head_dim, lane);
  if (kind == projected::query) {
    if (live) store8<true>(q + (row * p.heads + head) * head_dim, 8 * lane, head_dim, v);
  }
  // keys and values: the page is that of the row
  bool const writes = live && kind != projected::query && seq >= 0 && pos >= 0;
  size_t const page =
      writes ? static_cast<size_t>(pool.table[static_cast<size_t>(seq) * pool.table_width + static_cast<size_t>(pos) / page_tokens]) : 0;
  Kv* const to = pool.data + ((((page * pool.layers + layer) * 2 + static_cast<size_t>(kind == projected::value)) * pool.kv_heads + head) *
                                  page_tokens +
                              static_cast<size_t>(pos < 0 ? 0 : pos) % page_tokens) *
                                 page_row_elements<Kv>(head_dim);
  store_page_row(v, lane, head_dim, to, writes);
}
static __global__ void __launch_bounds__(256) swiglu_beside_kernel(size_t rows, size_t inner, bf16 const* gate_up, bf16* out) {
  next_may_start();
  wait_for_previous();
  size_t const at = size_t{blockIdx.x} * 256 + threadIdx.x, eights = inner / 8;
  if (at >= rows * eights) return;
  size_t const row = at / eights, i = at % eights * 8;
  bf16 const* const x = gate_up + row * 2 * inner;
  store8<true>(out + row * inner, i, inner, gated(load8<true>(x, i, inner), load8<true>(x + inner, i, inner)));
}
}  // namespace detail

// Bias, q/k norm and rotation of a layer's projections; keys and values go into their pages, queries [rows, heads, head_dim] to q.
// head_dim 64 or 128.
template <class Kv> void finish_projections(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows, projection const& p,
                                            i32 const* sequence, i32 const* position, bf16* q) {
  if (!rows) return;
  launch_chained(on, "finish_projections", detail::finish_projection<Kv>, blocks_of(rows * (p.heads + 2 * pool.kv_heads), 16), 256, 0, 1,
                 pool, layer, rows, p, sequence, position, q);
}
// out [rows, inner] = silu(gate) * up of gate_up [rows, 2 inner]; inner a multiple of 8
inline void swiglu_beside(cuda_context& on, size_t rows, size_t inner, bf16 const* gate_up, bf16* out) {
  if (!rows) return;
  launch_chained(on, "swiglu", detail::swiglu_beside_kernel, blocks_of(rows * (inner / 8), 256), 256, 0, 1, rows, inner, gate_up, out);
}
}  // namespace weft::kernels
