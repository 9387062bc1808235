// term.hpp — a loss term is a type with its settings as members. It states its unit, its mask and what it reads (the bases
// below), and is a function from a token (or prediction, or pair) to the loss there and its derivatives:
//
//   struct clipped_log_prob : objective::token_term<> {                      // a term of one's own
//     static constexpr char const* name = "actor/clipped";                  // under which its aggregated value is reported
//     double floor = -5;                                                     // settings are doubles
//     template <class T> token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
//       return t.log_prob < T(floor) ? token_loss<T>{-T(floor), 0, 0} : token_loss<T>{-t.log_prob, -1, 0};
//     }
//   };
//
// What is to be taken as a constant reads t.detached in place of t.log_prob: then the derivative of the value in log_prob alone is
// the gradient, and finite differences can check it. Optional members: statistics and reduce (sums over the sequence, known before
// the gradient pass), metrics and measure (sums over the tokens that count, reported as means over them).
#pragma once
#include "aggregation.hpp"

namespace weft::objective {
inline constexpr aggregation by_setting = aggregation(-1);  // the sum's loss_agg_mode

template <class Unit, class Mask, class Reads, aggregation Over> struct basic_term {
  using unit = Unit;
  using mask = Mask;
  using reads = Reads;
  static constexpr aggregation over = Over;
  static constexpr size_t statistics = 0;
  static constexpr double sign = 1;  // -1: what is reported is to grow
};
template <class Mask = response, class Reads = log_probs<full, tempered>, aggregation Over = by_setting> using token_term =
    basic_term<per_token, Mask, Reads, Over>;
template <class Mask = response, class Reads = log_probs<full, tempered>> using sequence_term =
    basic_term<per_sequence, Mask, Reads, aggregation::sequence_mean>;
template <class Reads = sequence_log_probs<full, plain>> using pair_term = basic_term<per_pair, completion, Reads, aggregation::pair_mean>;

// The same term on another kind of log-prob, under another mask, with another aggregation.
template <class Term, class Reads> struct reading : Term { using reads = Reads; };
template <class Term, class Mask> struct masked : Term { using mask = Mask; };
template <class Term, aggregation Over> struct aggregated : Term { static constexpr aggregation over = Over; };
}  // namespace weft::objective
