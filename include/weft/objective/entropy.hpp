// entropy.hpp — entropy bonus: loss -= entropy_coeff * aggregated H, H = entropy of the distribution the token was drawn from.
#pragma once
#include "term.hpp"

namespace weft::objective {
struct entropy : token_term<> {  // weight: entropy_coeff
  static constexpr char const* name = "actor/entropy";
  static constexpr double sign = -1;
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const { return {t.entropy, 0, 1}; }
};
}  // namespace weft::objective
