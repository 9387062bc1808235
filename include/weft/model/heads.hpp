// heads.hpp — what stands on the hidden states: the LM head's weight (its product is fused with the loss, kernels/head.hpp), or a score
// head for values and rewards.
#pragma once
#include <weft/kernels/score.hpp>
#include <weft/model/layout.hpp>

namespace weft::model {
// [vocab, hidden], the embedding when tied; [labels, hidden] of a model with a score head. Of a gradient arena: where its gradient is
// added.
template <class T> T* head_weight(config const& c, T* arena) { return arena + layout_of(c).head; }

// scores [tokens, labels] = hidden [tokens, hidden] * score [labels, hidden]^T
template <class T, class E>
void score_head(E& on, config const& c, size_t tokens, T const* hidden, T const* weights, accumulator<T>* scores) {
  kernels::score_rows(on, tokens, size_t(c.labels), size_t(c.hidden), hidden, head_weight(c, weights), scores);
}

// dhidden [tokens, hidden] is written; the head's gradient is added to `gradients`.
template <class T, class E> void score_head_backward(E& on, config const& c, size_t tokens, T const* hidden, T const* weights,
                                                     accumulator<T> const* dscores, T* dhidden, accumulator<T>* gradients) {
  kernels::score_rows_backward(on, tokens, size_t(c.labels), size_t(c.hidden), hidden, head_weight(c, weights), dscores, dhidden,
                               head_weight(c, gradients));
}
}  // namespace weft::model
