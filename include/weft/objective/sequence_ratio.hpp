// sequence_ratio.hpp — surrogates whose ratio belongs to the sequence: GSPO (arXiv:2507.18071) and GMPO's geometric mean
// (arXiv:2507.20673). Both need one pass over the log-probs before the gradient pass.
#pragma once
#include "term.hpp"

namespace weft::objective {
// log s = mean over the sequence of lp - old; at each token log r = min(lp - sg(lp) + sg(log s), 10); L = max(-A r, -A clip(r, ...)).
// The paper uses clip ratios of 3e-4 and 4e-4; verl and TRL leave 0.2.
struct gspo : token_term<response, log_probs<full, tempered>, aggregation::seq_mean_token_mean> {
  static constexpr char const* name = "actor/pg_loss";
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;

  static constexpr size_t statistics = 1;
  template <class T> WEFT_HD void reduce(token<T> const& t, T* sums) const { sums[0] += t.detached - t.old_log_prob; }

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const& s) const {
    T const log_ratio = t.log_prob - t.detached + s.statistics[0] / s.length, r = std::exp(log_ratio > 10 ? T(10) : log_ratio);
    T const free = -t.advantage * r, bound = -t.advantage * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high));
    token_loss<T> loss{free, log_ratio > 10 ? 0 : free, 0};
    if (bound > free) loss = {bound, 0, 0};
    return scaled(t.rollout_weight, loss);
  }

  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const& s, double* sums) const {
    T const log_ratio = s.statistics[0] / s.length, r = std::exp(log_ratio > 10 ? T(10) : log_ratio);
    sums[0] += -t.advantage * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high)) > -t.advantage * r;
    sums[1] += double(t.old_log_prob - t.log_prob);
  }
};

// c_t = sign(A) min(sign(A) l, sign(A) clip(l, -low, high)) with l = lp - old; L = -mean(A) exp(mean c) exp(mean log w).
// The loss of the sequence is shared out evenly over its tokens. Denominator: all sequences of the mini-batch.
struct geo_mean : sequence_term<> {
  static constexpr char const* name = "actor/pg_loss";
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;

  static constexpr size_t statistics = 3;
  template <class T> WEFT_HD T clipped(token<T> const& t) const {
    T const l = t.log_prob - t.old_log_prob, c = clamp<T>(l, -T(clip_ratio_low), T(clip_ratio_high));
    return t.advantage > 0 ? (l < c ? l : c) : t.advantage < 0 ? (l > c ? l : c) : t.advantage * l;  // A = 0: 0
  }
  template <class T> WEFT_HD void reduce(token<T> const& t, T* sums) const {
    sums[0] += clipped(t);
    sums[1] += t.advantage;
    sums[2] += std::log(t.rollout_weight + T(1e-10));
  }

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const& s) const {
    T const mean_A = s.statistics[1] / s.length, ratio = std::exp((s.statistics[0] + s.statistics[2]) / s.length);
    T const share = -mean_A * ratio / s.length, l = t.log_prob - t.old_log_prob;
    bool const moves = t.advantage > 0 ? l <= T(clip_ratio_high) : t.advantage < 0 ? l >= -T(clip_ratio_low) : false;
    return {share, moves ? share : T(0), 0};
  }

  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    T const l = t.log_prob - t.old_log_prob;
    bool const outside = l < -T(clip_ratio_low) || l > T(clip_ratio_high);
    sums[0] += outside && t.advantage > 0;
    sums[1] += outside && t.advantage < 0;
    sums[2] += double(-l);
  }
};
}  // namespace weft::objective
