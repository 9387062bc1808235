// heads.hpp — what stands on the hidden states: the LM head's weight (its product is fused with the loss, kernels/head.hpp), or a score
// head for values and rewards.
#pragma once
#include <weft/kernels/gemm.hpp>
#include <weft/model/layout.hpp>

namespace weft::model {
// [vocab, hidden], the embedding when tied; [labels, hidden] of a model with a score head. Of a gradient arena: where its gradient is
// added.
template <class T> T* head_weight(config const& c, T* arena) { return arena + layout_of(c).head; }

// scores [tokens, labels] = hidden [tokens, hidden] * score [labels, hidden]^T
template <class T, class E> void score_head(E& on, config const& c, size_t tokens, T const* hidden, T const* weights, T* scores) {
  size_t const labels = size_t(c.labels), width = size_t(c.hidden);
  kernels::gemm_nt(on, tokens, labels, width, hidden, width, head_weight(c, weights), width, scores, labels, false);
}

// dhidden [tokens, hidden] is written; the head's gradient is added to `gradients`.
template <class T, class E> void score_head_backward(E& on, config const& c, size_t tokens, T const* hidden, T const* weights,
                                                     T const* dscores, T* dhidden, T* gradients) {
  size_t const labels = size_t(c.labels), width = size_t(c.hidden);
  kernels::gemm_nn(on, tokens, width, labels, dscores, labels, head_weight(c, weights), width, dhidden, width, false);
  kernels::gemm_tn(on, labels, width, tokens, dscores, labels, hidden, width, head_weight(c, gradients), width, true);
}
}  // namespace weft::model
