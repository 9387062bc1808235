// forward.hpp — the decoder. One layer template serves training, scoring, prefill and decode; they differ only in where keys and values
// lie, which `attend` knows.
//
//   x = embedding[ids]
//   each layer:  middle = x + o(attention(rope(norm(q(n))), rope(norm(k(n))), v(n)))     n = rmsnorm(x)
//                x      = middle + down(silu(gate(m)) * up(m))                           m = rmsnorm(middle)
//   hidden = rmsnorm(x)
//
// Tokens are packed: sequences stand one behind the other, no pad token exists. A row of `hidden` depends on nothing but its own sequence,
// and has the same bits whatever else is in the batch, however many threads run, and whether keys come from this batch or from pages.
#pragma once
#define WEFT_MODEL_FORWARD
#include <cmath>

#include <weft/kernels/assemble.hpp>
#include <weft/kernels/attention.hpp>
#include <weft/kernels/elementwise.hpp>
#include <weft/kernels/embedding.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/paged.hpp>
#include <weft/kernels/rmsnorm.hpp>
#include <weft/kernels/rope.hpp>
#include <weft/kernels/swiglu.hpp>
#include <weft/model/activations.hpp>
#include <weft/model/layout.hpp>

namespace weft::model {
// Packed sequences. positions[i] counts from 0 within the sequence of token i. On a GPU tokens may go beyond cu_seqlens[sequences]: those
// have id and position -1.
struct batch_view {
  i32 const* ids;         // [tokens]
  i32 const* positions;   // [tokens]
  i32 const* cu_seqlens;  // [sequences + 1], from 0 to tokens
  i32 tokens, sequences;
};

template <class T> accumulator<T> attention_scale(config const& c) { return accumulator<T>(1 / std::sqrt(double(c.head_dim))); }

// y [tokens, out] = x [tokens, in] * weight [out, in]^T + bias [out] (or none)
template <class T, class E> void linear(E& on, size_t tokens, size_t in, size_t out, T const* x, T const* weight, T const* bias, T* y) {
  kernels::gemm_nt(on, tokens, out, in, x, in, weight, in, y, out, false);
  if (bias) kernels::add_bias(on, tokens, out, bias, y);
}

// One layer: x [tokens, hidden] -> out [tokens, hidden], which may be x; without an out it stops before the last product. attend(q, k, v,
// attended, lse).
template <class T, class E, class Attend> void layer_forward(E& on, config const& c, accumulator<T> const* rope,
                                                             layer_view<T const> const& w, size_t tokens, i32 const* positions, T const* x,
                                                             layer_room<T> const& a, Attend const& attend, T* out) {
  size_t const hidden = size_t(c.hidden), inner = size_t(c.intermediate), heads = size_t(c.heads), kv_heads = size_t(c.kv_heads),
               head_dim = size_t(c.head_dim);
  accumulator<T> const eps = accumulator<T>(c.rms_norm_eps);

  kernels::rmsnorm(on, tokens, hidden, x, w.input_norm, eps, a.input_normed, a.input_rms);
  linear(on, tokens, hidden, c.q_width(), a.input_normed, w.q, w.q_bias, a.q_raw);
  linear(on, tokens, hidden, c.kv_width(), a.input_normed, w.k, w.k_bias, a.k_raw);
  linear(on, tokens, hidden, c.kv_width(), a.input_normed, w.v, w.v_bias, a.v);
  if (c.qk_norm) {
    kernels::rmsnorm(on, tokens * heads, head_dim, a.q_raw, w.q_norm, eps, a.q, a.q_rms);
    kernels::rmsnorm(on, tokens * kv_heads, head_dim, a.k_raw, w.k_norm, eps, a.k, a.k_rms);
  }
  kernels::rope(on, tokens, heads, head_dim, positions, rope, a.q);
  kernels::rope(on, tokens, kv_heads, head_dim, positions, rope, a.k);
  attend(a.q, a.k, a.v, a.attended, a.lse);
  linear(on, tokens, c.q_width(), hidden, a.attended, w.o, w.o_bias, a.middle);
  kernels::add(on, tokens * hidden, x, a.middle);

  kernels::rmsnorm(on, tokens, hidden, a.middle, w.post_norm, eps, a.post_normed, a.post_rms);
  linear(on, tokens, hidden, inner, a.post_normed, w.gate, w.gate_bias, a.gate);
  linear(on, tokens, hidden, inner, a.post_normed, w.up, w.up_bias, a.up);
  kernels::swiglu(on, tokens * inner, a.gate, a.up, a.product);
  if (!out) return;
  linear(on, tokens, inner, hidden, a.product, w.down, w.down_bias, out);
  kernels::add(on, tokens * hidden, a.middle, out);
}

// Attention within the packed batch.
template <class T, class E> auto attend_packed(E& on, config const& c, batch_view const& b) {
  return [&on, &c, &b](T const* q, T const* k, T const* v, T* attended, accumulator<T>* lse) {
    kernels::attention(on, size_t(b.sequences), b.cu_seqlens, size_t(c.heads), size_t(c.kv_heads), size_t(c.head_dim),
                       attention_scale<T>(c), q, k, v, attended, lse);
    kernels::clear_tail(on, b.cu_seqlens + b.sequences, size_t(b.tokens), c.q_width(), attended);
  };
}

// hidden [tokens, hidden], after the final norm. `rope` comes from fill_rope_table and covers every position; `scratch` holds
// activation_count(...) elements.
template <class T, class E> void forward(E& on, config const& c, bool recompute, accumulator<T> const* rope, T const* weights,
                                         batch_view const& b, T* scratch, T* hidden) {
  size_t const tokens = size_t(b.tokens);
  layout const l = layout_of(c);
  activations<T> const a(c, tokens, recompute, scratch);
  auto const attend = attend_packed<T>(on, c, b);
  kernels::embed(on, tokens, size_t(c.hidden), b.ids, weights + l.embedding, a.inputs);
  for (i32 i = 0; i < c.layers; ++i)
    layer_forward<T>(on, c, rope, view_of(c, l, weights, i), tokens, b.positions, a.input(i), a.layer(i), attend, a.input(i + 1));
  kernels::rmsnorm(on, tokens, size_t(c.hidden), a.input(c.layers), weights + l.final_norm, accumulator<T>(c.rms_norm_eps), hidden,
                   a.final_rms);
}

// Decode and prefill over pages: row i is the token ids[i] at positions[i] of sequence[i], in any mixture; rows of one sequence may stand
// in any order. Keys and values of all rows are written first, then each row sees keys 0..its position, so those before the batch's must be
// in the pages already. hidden [rows, hidden].
template <class T, class Kv, class E> void forward_paged(E& on, config const& c, accumulator<T> const* rope, T const* weights, size_t rows,
                                                         i32 const* ids, i32 const* positions, i32 const* sequence,
                                                         kernels::paged_pool<Kv> const& pool, T* workspace, T* hidden) {
  layout const l = layout_of(c);
  carver<T> take{workspace};
  T* const x = take(rows * size_t(c.hidden));
  layer_room<T> const a = carve_paged(c, rows, take);
  kernels::embed(on, rows, size_t(c.hidden), ids, weights + l.embedding, x);
  for (i32 i = 0; i < c.layers; ++i) {
    auto const attend = [&](T const* q, T const* k, T const* v, T* attended, accumulator<T>*) {
      kernels::paged_write(on, pool, size_t(i), rows, sequence, positions, k, v);
      kernels::attention_paged(on, pool, size_t(i), rows, sequence, positions, size_t(c.heads), attention_scale<T>(c), q, attended);
    };
    layer_forward<T>(on, c, rope, view_of(c, l, weights, i), rows, positions, x, a, attend, x);
  }
  kernels::rmsnorm(on, rows, size_t(c.hidden), x, weights + l.final_norm, accumulator<T>(c.rms_norm_eps), hidden,
                   static_cast<accumulator<T>*>(nullptr));
}
}  // namespace weft::model
