// policy_gradient.hpp — surrogates without a hard bound on the loss: REINFORCE (verl: gpg, reinforce), CISPO (arXiv:2506.13585)
// and SAPO (verl: sapo).
#pragma once
#include "term.hpp"

namespace weft::objective {
struct reinforce : token_term<> {  // L = -A lp
  static constexpr char const* name = "actor/pg_loss";
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    return scaled(t.rollout_weight, token_loss<T>{-t.advantage * t.log_prob, -t.advantage, 0});
  }
  static constexpr char const* metrics[] = {"actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    sums[0] += double(t.old_log_prob - t.log_prob);
  }
};

struct cispo : token_term<> {  // L = -sg(clip(r, 1 - low, 1 + high)) A lp
  static constexpr char const* name = "actor/pg_loss";
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    T const r = std::exp(clamp<T>(t.detached - t.old_log_prob, -20, 20));
    T const slope = -t.advantage * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high));
    return scaled(t.rollout_weight, token_loss<T>{slope * t.log_prob, slope, 0});
  }
  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    T const l = clamp<T>(t.log_prob - t.old_log_prob, -20, 20), r = std::exp(l);
    sums[0] += r < T(1 - clip_ratio_low) || r > T(1 + clip_ratio_high);
    sums[1] += double(-l);
  }
};

// L = -A sigma(tau (r - 1)) 4 / tau, with tau of its own for A > 0 and for the rest
struct sapo : token_term<response, log_probs<full, tempered>, aggregation::seq_mean_token_mean> {
  static constexpr char const* name = "actor/pg_loss";
  double tau_pos = 1, tau_neg = 1.05;

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    T const log_ratio = t.log_prob - t.old_log_prob, l = clamp<T>(log_ratio, -20, 20), r = std::exp(l);
    T const tau = t.advantage > 0 ? T(tau_pos) : T(tau_neg), gate = sigmoid(tau * (r - 1));
    return scaled(t.rollout_weight, token_loss<T>{-t.advantage * gate * 4 / tau,
                                                  l == log_ratio ? -t.advantage * 4 * gate * sigmoid(-tau * (r - 1)) * r : 0, 0});
  }
  static constexpr char const* metrics[] = {"actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    sums[0] -= double(clamp<T>(t.log_prob - t.old_log_prob, -20, 20));
  }
};
}  // namespace weft::objective
