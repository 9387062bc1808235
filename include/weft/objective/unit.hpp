// unit.hpp — the vocabulary of loss terms: what a term is counted in, which tokens it counts, what it reads, what it returns.
// lp = log-prob under the policy, old = under the policy that the batch was made for, ref = under the reference model.
#pragma once
#include <cmath>
#include "../element.hpp"

namespace weft::objective {
// Units. A sequence term is evaluated at every token too and gives each token its share, so that one pass serves both.
struct per_token;
struct per_sequence;
struct per_pair;

// Masks: the tokens that count.
struct response;    // tokens that the policy produced (not prompt, not tool output)
struct completion;  // tokens that a demonstration wants learned

// Kinds of log-prob. Full: over the whole vocabulary; filtered: renormalised over what top-k, top-p and min-p kept.
// Tempered: under the temperature of sampling; plain: under temperature 1.
struct full;
struct filtered;
struct tempered;
struct plain;

template <class T> struct token {  // one token that counts
  using scalar = T;
  T log_prob = 0;
  T detached = 0;  // sg(lp): the same number, treated as a constant
  T entropy = 0;
  T old_log_prob = 0, ref_log_prob = 0, advantage = 0;
  T rollout_weight = 1;  // importance weight of the rollout, a constant
  i32 selected = 0;      // by a pass over the mini-batch (covariance.hpp)
};
template <class T> struct token_loss { T value, log_prob, entropy; };  // L, dL/dlp, dL/dH

template <class T> struct prediction {  // one token of the critic
  using scalar = T;
  T value = 0, old_value = 0, target = 0;  // target: the return
};
template <class T> struct value_loss { T value, prediction; };  // L, dL/dv

template <class T> struct pair {  // what is preferred and what is not
  using scalar = T;
  T chosen = 0, rejected = 0;  // sums of log-probs, or scores of a reward model
  T ref_chosen = 0, ref_rejected = 0;
  T chosen_length = 1, rejected_length = 1;  // tokens that count
};
template <class T> struct pair_loss { T value, chosen, rejected; };  // L, dL/dchosen, dL/drejected

template <class T> struct sequence {  // what a token term may know of the sequence around the token
  T length = 1;                       // tokens that count
  T const* statistics = nullptr;      // [Term::statistics] sums over those tokens, filled by Term::reduce
};

template <class Support, class Temperature> struct log_probs { template <class T> using loss = token_loss<T>; };
template <class Support, class Temperature> struct sequence_log_probs {  // sums of a whole sequence
  template <class T> using loss = pair_loss<T>;
};
struct values {
  template <class T> using loss = value_loss<T>;
};
struct scores {
  template <class T> using loss = pair_loss<T>;
};

template <class T> WEFT_HD token_loss<T> scaled(T k, token_loss<T> const& l) { return {k * l.value, k * l.log_prob, k * l.entropy}; }
template <class T> WEFT_HD value_loss<T> scaled(T k, value_loss<T> const& l) { return {k * l.value, k * l.prediction}; }
template <class T> WEFT_HD pair_loss<T> scaled(T k, pair_loss<T> const& l) { return {k * l.value, k * l.chosen, k * l.rejected}; }
template <class T> WEFT_HD token_loss<T> plus(token_loss<T> const& a, token_loss<T> const& b) {
  return {a.value + b.value, a.log_prob + b.log_prob, a.entropy + b.entropy};
}
template <class T> WEFT_HD value_loss<T> plus(value_loss<T> const& a, value_loss<T> const& b) {
  return {a.value + b.value, a.prediction + b.prediction};
}
template <class T> WEFT_HD pair_loss<T> plus(pair_loss<T> const& a, pair_loss<T> const& b) {
  return {a.value + b.value, a.chosen + b.chosen, a.rejected + b.rejected};
}

template <class T> WEFT_HD T clamp(T x, T low, T high) { return x < low ? low : x > high ? high : x; }  // NaN stays NaN

// log(1 + e^x) and 1 / (1 + e^-x), without overflow
template <class T> WEFT_HD T softplus(T x) { return (x > 0 ? x : T(0)) + std::log1p(std::exp(x > 0 ? -x : x)); }
template <class T> WEFT_HD T sigmoid(T x) {
  T const e = std::exp(x > 0 ? -x : x);
  return x > 0 ? 1 / (1 + e) : e / (1 + e);
}
}  // namespace weft::objective
