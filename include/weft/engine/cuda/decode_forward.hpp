// engine/cuda/decode_forward.hpp — model::forward_paged for few rows, with as few launches as there are products: projections of one input
// are one product, since their weights lie one behind the other, and what stands between products is one kernel. The bits are those of
// forward_paged: every output of a product is a dot product of its own.
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
                                        i32 const* ids, i32 const* positions, i32 const* sequence, kernels::paged_pool<Kv> const& pool,
                                        bf16* work, bf16* hidden) {
  size_t const width = size_t(c.hidden), inner = size_t(c.intermediate), q_width = c.q_width(), qkv_width = q_width + 2 * c.kv_width();
  layout const l = layout_of(c);
  carver<bf16> take{work};
  bf16 *const residual = take(rows * width), *const normed = take(rows * width), *const product = take(rows * width);
  carver<bf16> mlp = take;
  bf16 *const qkv = take(rows * qkv_width), *const q = take(rows * q_width), *const attended = take(rows * q_width);
  bf16 *const gate_up = mlp(rows * 2 * inner), *const gated = mlp(rows * inner);
  f32 const eps = c.rms_norm_eps;
  f32* const no_rms = nullptr;
  kernels::embed(on, rows, width, ids, weights + l.embedding, residual);
  kernels::rmsnorm(on, rows, width, residual, view_of(c, l, weights, 0).input_norm, eps, normed, no_rms);
  for (i32 i = 0; i < c.layers; ++i) {
    auto const w = view_of(c, l, weights, i);
    kernels::gemm_nt(on, rows, qkv_width, width, normed, width, w.q, width, qkv, qkv_width, false);
    kernels::projection const p{qkv, w.q_bias, w.k_bias, w.v_bias, w.q_norm, w.k_norm, eps, rope, size_t(c.heads)};
    kernels::finish_projections(on, pool, size_t(i), rows, p, sequence, positions, q);
    kernels::attention_paged(on, pool, size_t(i), rows, sequence, positions, size_t(c.heads), attention_scale<bf16>(c), q, attended);
    kernels::gemm_nt(on, rows, width, q_width, attended, q_width, w.o, q_width, product, width, false);
    kernels::add_rmsnorm(on, rows, width, product, residual, w.post_norm, eps, normed, no_rms);
    kernels::gemm_nt(on, rows, 2 * inner, width, normed, width, w.gate, width, gate_up, 2 * inner, false);
    kernels::swiglu_beside(on, rows, inner, gate_up, gated);
    kernels::gemm_nt(on, rows, width, inner, gated, inner, w.down, inner, product, width, false);
    bool const last = i + 1 == c.layers;
    bf16 const* const next = last ? weights + l.final_norm : view_of(c, l, weights, i + 1).input_norm;
    kernels::add_rmsnorm(on, rows, width, product, residual, next, eps, last ? hidden : normed, no_rms);
  }
}
}  // namespace weft::model
