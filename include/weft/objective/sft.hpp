// sft.hpp — supervised fine-tuning: the negative log-likelihood of the tokens to be learned, at temperature 1.
#pragma once
#include "term.hpp"

namespace weft::objective {
struct sft : token_term<completion, log_probs<full, plain>> {
  static constexpr char const* name = "train/loss";
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const { return {-t.log_prob, -1, 0}; }
};
}  // namespace weft::objective
