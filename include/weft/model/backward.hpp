// backward.hpp — the gradient of forward.hpp, layer by layer in reverse. Gradients are added into an arena that mirrors the weights.
//
// Every sum over tokens walks them in order and starts from what the gradient holds, so micro-batches cut anywhere between sequences leave
// the same bits as one batch. One exception: a tied embedding receives two sums (of the head and of the input), whose interleaving depends
// on the cut; there the splits agree to rounding, unless the head's gradient goes to a buffer of its own and is added once at the end.
#pragma once
#include <weft/model/forward.hpp>

namespace weft::model {
// Through y = x weight^T + bias: dx [tokens, in] is written, or added to; dweight and dbias are added to.
template <class T, class E> void linear_backward(E& on, size_t tokens, size_t in, size_t out, T const* x, T const* weight, T const* dy,
                                                 T* dx, bool add_dx, accumulator<T>* dweight, accumulator<T>* dbias) {
  kernels::gemm_nn(on, tokens, in, out, dy, out, weight, in, dx, in, add_dx);
  kernels::gemm_tn(on, out, in, tokens, dy, out, x, in, dweight, in, true);
  if (dbias) kernels::bias_backward(on, tokens, out, dy, dbias);
}

// d.residual comes in as the gradient of the layer's output and leaves as that of its input x.
template <class T, class E> void layer_backward(E& on, config const& c, accumulator<T> const* rope, layer_view<T const> const& w,
                                                batch_view const& b, T const* x, layer_room<T> const& a, gradient_room<T> const& d,
                                                layer_view<accumulator<T>> const& dw) {
  size_t const tokens = size_t(b.tokens), hidden = size_t(c.hidden), inner = size_t(c.intermediate);
  size_t const heads = size_t(c.heads), kv_heads = size_t(c.kv_heads), head_dim = size_t(c.head_dim), q_width = c.q_width(),
               kv_width = c.kv_width();

  // d.gate holds the gradient of the product, then that of the gate
  linear_backward(on, tokens, inner, hidden, a.product, w.down, d.residual, d.gate, false, dw.down, dw.down_bias);
  kernels::swiglu_backward(on, tokens * inner, a.gate, a.up, d.gate, d.gate, d.up);
  linear_backward(on, tokens, hidden, inner, a.post_normed, w.gate, d.gate, d.normed, false, dw.gate, dw.gate_bias);
  linear_backward(on, tokens, hidden, inner, a.post_normed, w.up, d.up, d.normed, true, dw.up, dw.up_bias);
  kernels::rmsnorm_backward(on, tokens, hidden, a.middle, w.post_norm, a.post_rms, d.normed, d.residual, dw.post_norm);

  linear_backward(on, tokens, q_width, hidden, a.attended, w.o, d.residual, d.attended, false, dw.o, dw.o_bias);
  kernels::attention_backward(on, size_t(b.sequences), b.cu_seqlens, heads, kv_heads, head_dim, attention_scale<T>(c), a.q, a.k, a.v,
                              a.attended, a.lse, d.attended, d.q, d.k, d.v);
  i32 const* const used = b.cu_seqlens + b.sequences;
  kernels::clear_tail(on, used, tokens, q_width, d.q);
  kernels::clear_tail(on, used, tokens, kv_width, d.k);
  kernels::clear_tail(on, used, tokens, kv_width, d.v);
  kernels::rope_backward(on, tokens, heads, head_dim, b.positions, rope, d.q);
  kernels::rope_backward(on, tokens, kv_heads, head_dim, b.positions, rope, d.k);
  if (c.qk_norm) {
    kernels::fill(on, tokens * q_width, T{}, d.q_raw);
    kernels::fill(on, tokens * kv_width, T{}, d.k_raw);
    kernels::rmsnorm_backward(on, tokens * heads, head_dim, a.q_raw, w.q_norm, a.q_rms, d.q, d.q_raw, dw.q_norm);
    kernels::rmsnorm_backward(on, tokens * kv_heads, head_dim, a.k_raw, w.k_norm, a.k_rms, d.k, d.k_raw, dw.k_norm);
  }
  linear_backward(on, tokens, hidden, q_width, a.input_normed, w.q, d.q_raw, d.normed, false, dw.q, dw.q_bias);
  linear_backward(on, tokens, hidden, kv_width, a.input_normed, w.k, d.k_raw, d.normed, true, dw.k, dw.k_bias);
  linear_backward(on, tokens, hidden, kv_width, a.input_normed, w.v, d.v, d.normed, true, dw.v, dw.v_bias);
  kernels::rmsnorm_backward(on, tokens, hidden, x, w.input_norm, a.input_rms, d.normed, d.residual, dw.input_norm);
}

// dhidden [tokens, hidden] is the loss's gradient at forward's output; `scratch` is as forward left it, with the same arguments. Gradients
// are added. With `recompute` a layer's forward is done again before its backward, with the same bits; the last layer's is still there.
template <class T, class E> void backward(E& on, config const& c, bool recompute, accumulator<T> const* rope, T const* weights,
                                          batch_view const& b, T* scratch, T const* dhidden, accumulator<T>* gradients) {
  size_t const tokens = size_t(b.tokens), hidden = size_t(c.hidden);
  layout const l = layout_of(c);
  activations<T> const a(c, tokens, recompute, scratch);
  auto const attend = attend_packed<T>(on, c, b);
  T* const residual = a.gradient.residual;
  kernels::fill(on, tokens * hidden, T{}, residual);
  kernels::rmsnorm_backward(on, tokens, hidden, a.input(c.layers), weights + l.final_norm, a.final_rms, dhidden, residual,
                            gradients + l.final_norm);
  for (i32 i = c.layers; i-- > 0;) {
    layer_view<T const> const w = view_of(c, l, weights, i);
    T* const x = a.input(i);
    if (recompute && i + 1 < c.layers)
      layer_forward<T>(on, c, rope, w, tokens, b.positions, x, a.layer(i), attend, static_cast<T*>(nullptr));
    layer_backward<T>(on, c, rope, w, b, x, a.layer(i), a.gradient, view_of(c, l, gradients, i));
  }
  kernels::embed_backward(on, tokens, hidden, b.ids, residual, gradients + l.embedding);
}
}  // namespace weft::model
