// sum.hpp — an objective is a typed sum of terms. It is a trivially copyable setting, and three functions of one token (or pair):
//   reduce    adds the token to its sequence's statistics (only where `statistics` > 0: a pass before the gradient pass)
//   evaluate  loss and gradient there, weighted by the integers of the whole mini-batch
//   measure   adds the token to the metrics: in token order on one thread, so that they depend on nothing else
// All are called for tokens that count only: what lies at other tokens is never read.
//
//   objective::sum<objective::ppo_clip, objective::kl, objective::entropy> o;
//   o.of<objective::kl>().weight = 0.001;
//   o.loss_agg_mode = objective::aggregation::seq_mean_token_mean;
#pragma once
#include <array>
#include "term.hpp"

namespace weft::objective {
template <class Term> struct weighted : Term { double weight = 1; };  // weight 0: the term is measured, not trained

struct metric_name {
  char const* name;
  bool mean;  // of the tokens (or pairs) that count; else aggregated already
};

namespace detail {
template <class Unit> inline constexpr bool is_pair = std::is_same_v<Unit, per_pair>;

template <class Term> constexpr bool denominator_fits() {
  if constexpr (Term::over == by_setting) return std::is_same_v<typename Term::unit, per_token>;
  else return std::is_same_v<typename Term::unit, unit_of<Term::over>>;
}
// The first thing wrong with Term beside First, or void.
template <class First, class Term> constexpr auto mistake() {
  using error::is, error::wanted;
  if constexpr (is_pair<typename Term::unit> != is_pair<typename First::unit>)
    return (error::TERM_HAS_ANOTHER_UNIT<Term, is<typename Term::unit>, wanted<typename First::unit>>*)nullptr;
  else if constexpr (!std::is_same_v<typename Term::mask, typename First::mask>)
    return (error::TERM_HAS_ANOTHER_MASK<Term, is<typename Term::mask>, wanted<typename First::mask>>*)nullptr;
  else if constexpr (!std::is_same_v<typename Term::reads, typename First::reads>)
    return (error::TERM_READS_SOMETHING_ELSE<Term, is<typename Term::reads>, wanted<typename First::reads>>*)nullptr;
  else if constexpr (!denominator_fits<Term>())
    return (error::DENOMINATOR_DOES_NOT_FIT_UNIT<Term, is<unit_of<Term::over>>, wanted<typename Term::unit>>*)nullptr;
  else return (void*)nullptr;
}
template <class First, class Term, class Mistake = std::remove_pointer_t<decltype(mistake<First, Term>())>> struct fits
    : demand<std::is_void_v<Mistake>, Mistake> {};

template <class Term> WEFT_HD constexpr size_t metrics_of() {
  if constexpr (requires { Term::metrics; }) return sizeof(Term::metrics) / sizeof(Term::metrics[0]);
  else return 0;
}
}  // namespace detail

template <class First, class... Rest> struct sum : weighted<First>, weighted<Rest>... {
  static_assert((sizeof(detail::fits<First, First>) + ... + sizeof(detail::fits<First, Rest>)) > 0);
  using unit = typename First::unit;
  using mask = typename First::mask;
  using reads = typename First::reads;

  aggregation loss_agg_mode = aggregation::token_mean;  // of the terms that do not fix their own
  double loss_scale_factor = 1;                         // of seq_mean_token_sum_norm: a constant, never the padded width
  double scale = 1;                                     // loss scale, a power of two

  template <class Term> WEFT_HD constexpr weighted<Term>& of() { return *this; }
  template <class Term> WEFT_HD constexpr weighted<Term> const& of() const { return *this; }

  static constexpr size_t statistics = (First::statistics + ... + Rest::statistics);  // numbers for each sequence

  template <class Input> WEFT_HD void reduce(Input const& in, typename Input::scalar* sums /*[statistics]*/) const {
    each([&]<class Term>(weighted<Term> const& term) {
      if constexpr (Term::statistics > 0) {
        term.reduce(in, sums);
        sums += Term::statistics;
      }
    });
  }

  template <class Input, class Mask, class T = typename Input::scalar>
  WEFT_HD typename reads::template loss<T> evaluate(Input const& in, sequence<T> around, counts<Mask> const& n) const {
    (void)demand<std::is_same_v<Mask, mask>, error::COUNTS_ARE_OF_ANOTHER_MASK<sum, error::is<Mask>, error::wanted<mask>>>{};
    typename reads::template loss<T> total{};
    each([&]<class Term>(weighted<Term> const& term) {
      if (term.weight != 0) {
        T const k = T(scale * Term::sign * term.weight) * weight_in<Term>(n, around.length);
        total = plus(total, scaled(k, term(in, around)));
      }
      around.statistics += Term::statistics;
    });
    return total;
  }

  // Metrics: sums[0] is the whole loss (unscaled), then for each term its aggregated value and its own metrics.
  static constexpr size_t metric_count = 2 + sizeof...(Rest) + (detail::metrics_of<First>() + ... + detail::metrics_of<Rest>());

  static constexpr std::array<metric_name, metric_count> metric_names() {
    std::array<metric_name, metric_count> names{{{"loss", false}}};
    size_t k = 1;
    auto put = [&]<class Term>(Term const*) {
      names[k++] = {Term::name, false};
      if constexpr (detail::metrics_of<Term>() > 0)
        for (auto name : Term::metrics) names[k++] = {name, true};
    };
    put((First const*)nullptr);
    (put((Rest const*)nullptr), ...);
    return names;
  }

  template <class Input, class Mask, class T = typename Input::scalar>
  WEFT_HD void measure(Input const& in, sequence<T> around, counts<Mask> const& n, double* sums /*[metric_count]*/) const {
    double* at = sums + 1;
    each([&]<class Term>(weighted<Term> const& term) {
      double const value = double(weight_in<Term>(n, around.length)) * double(term(in, around).value);
      if (term.weight != 0) sums[0] += Term::sign * term.weight * value;
      *at++ += value;
      if constexpr (detail::metrics_of<Term>() > 0) term.measure(in, around, at);
      at += detail::metrics_of<Term>();
      around.statistics += Term::statistics;
    });
  }
  template <class Mask> static constexpr std::int64_t denominator(metric_name const& metric, counts<Mask> const& n) {
    return !metric.mean ? 1 : detail::is_pair<unit> ? n.pairs : n.tokens;
  }

 private:
  template <class F> WEFT_HD void each(F&& f) const {
    f(of<First>());
    (f(of<Rest>()), ...);
  }
  template <class Term, class Mask, class T> WEFT_HD T weight_in(counts<Mask> const& n, T length) const {
    return weight_of(Term::over == by_setting ? loss_agg_mode : Term::over, loss_scale_factor, n, length);
  }
};

// Base of a stage that hands an objective log-probs of this kind
template <class Sum, class LogProbs> struct accepts
    : demand<std::is_same_v<typename Sum::reads, LogProbs>,
             error::OBJECTIVE_READS_OTHER_LOG_PROBS<Sum, error::is<LogProbs>, error::wanted<typename Sum::reads>>> {};
}  // namespace weft::objective
