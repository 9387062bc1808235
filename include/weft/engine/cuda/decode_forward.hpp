// engine/cuda/decode_forward.hpp — model::forward_paged for few rows, with as few launches as there are products: projections of one input
// are one product, since their weights lie one behind the other, and what stands between products is one kernel, or for at most 16 rows
// part of the product behind it. The bits are those of forward_paged: every output of a product is a dot product of its own.
#pragma once
#include <weft/kernels/cuda/decode_layer.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/model/forward.hpp>

namespace weft::model {
inline bool has_decode_forward(config const& c) {
  return (c.head_dim == 64 || c.head_dim == 128) && c.hidden % 16 == 0 && c.intermediate % 16 == 0 && !c.mlp_bias && !c.o_bias;
}
// work: decode_workspace_count elements; hidden [rows, hidden], both with room for gemm_rows(rows)
template <class Kv> void decode_forward(kernels::cuda_context& on, config const& c, f32 const* rope, bf16 const* weights, size_t rows,
                                        i32 const* ids, i32 const* positions, i32 const* sequence, kernels::page_groups groups,
                                        kernels::paged_pool<Kv> const& pool, bf16* work, bf16* hidden) {
  size_t const width = size_t(c.hidden), inner = size_t(c.intermediate), q_width = c.q_width(), qkv_width = q_width + 2 * c.kv_width();
  size_t const room = kernels::gemm_rows(rows);
  layout const l = layout_of(c);
  carver<bf16> take{work};
  bf16 *residual = take(room * width), *other = take(room * width), *const normed = take(room * width), *const product = take(room * width);
  carver<bf16> mlp = take;
  bf16 *const qkv = take(room * qkv_width), *const q = take(room * q_width), *const attended = take(room * q_width);
  bf16 *const gate_up = mlp(room * 2 * inner), *const gated = mlp(room * inner);
  f32 const eps = c.rms_norm_eps;
  f32* const no_rms = nullptr;
  bf16 const* added = nullptr;  // the product that the residual still lacks
  auto const norm = [&](bf16 const* weight, bf16* to) {
    if (!added) return kernels::rmsnorm(on, rows, width, residual, weight, eps, to, no_rms);
    kernels::add_rmsnorm(on, rows, width, added, residual, other, weight, eps, to, no_rms);
  };
  auto const normed_product = [&](bf16 const* weight, size_t n, bf16 const* w, bf16* to) {
    if (!kernels::gemm_few_rows(on, kernels::normed_rows{added, residual, other, weight, eps}, rows, n, width, w, width, to, n)) {
      norm(weight, normed);
      kernels::gemm_nt(on, rows, n, width, normed, width, w, width, to, n, false);
    }
    if (added) std::swap(residual, other);
    added = product;
  };
  kernels::embed(on, rows, width, ids, weights + l.embedding, residual);
  for (i32 i = 0; i < c.layers; ++i) {
    auto const w = view_of(c, l, weights, i);
    normed_product(w.input_norm, qkv_width, w.q, qkv);
    kernels::projection const p{qkv, w.q_bias, w.k_bias, w.v_bias, w.q_norm, w.k_norm, eps, rope, size_t(c.heads)};
    f32 const scale = attention_scale<bf16>(c);
    if (!kernels::attention_projected(on, pool, size_t(i), rows, p, sequence, positions, scale, attended)) {
      kernels::finish_projections(on, pool, size_t(i), rows, p, sequence, positions, q);
      kernels::attention_paged(on, pool, size_t(i), rows, sequence, positions, size_t(c.heads), scale, q, attended, groups);
    }
    kernels::gemm_nt(on, rows, width, q_width, attended, q_width, w.o, q_width, product, width, false);
    normed_product(w.post_norm, 2 * inner, w.gate, gate_up);
    if (!kernels::gemm_few_rows(on, kernels::gated_rows{gate_up}, rows, width, inner, w.down, inner, product, width)) {
      kernels::swiglu_beside(on, rows, inner, gate_up, gated);
      kernels::gemm_nt(on, rows, width, inner, gated, inner, w.down, inner, product, width, false);
    }
  }
  norm(weights + l.final_norm, hidden);
}
}  // namespace weft::model
