// distill.hpp — distillation from a teacher: the reverse KL of the policy to it, KL(policy || teacher), at every token of the policy's own samples
// (arXiv:2306.13649, 2306.08543). Over the whole vocabulary, or over the teacher's `best` likeliest ids with the rest as one bucket.
#pragma once
#include "term.hpp"

namespace weft::objective {
template <class T> struct taught {  // one token's distribution against the teacher's
  using scalar = T;
  T kl = 0;
};
template <class T> struct taught_loss {
  T value, kl;
};  // L, dL/dKL
template <class T> WEFT_HD taught_loss<T> scaled(T k, taught_loss<T> const& l) { return {k * l.value, k * l.kl}; }
template <class T> WEFT_HD taught_loss<T> plus(taught_loss<T> const& a, taught_loss<T> const& b) {
  return {a.value + b.value, a.kl + b.kl};
}
struct distributions {  // full, plain: both at temperature 1
  template <class T> using loss = taught_loss<T>;
};

struct reverse_kl : token_term<response, distributions> {
  static constexpr char const* name = "actor/distill_loss";
  i32 best = 0;  // ids of the teacher; 0: the whole vocabulary
  template <class T> WEFT_HD taught_loss<T> operator()(taught<T> const& d, sequence<T> const&) const { return {d.kl, 1}; }
};
}  // namespace weft::objective
