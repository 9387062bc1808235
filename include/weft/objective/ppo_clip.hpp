// ppo_clip.hpp — the clipped surrogate of PPO (verl: "vanilla"), with dual clip and separate bounds (DAPO's clip-higher):
//   l = clip(lp - old, +-20), r = e^l, L = max(-A r, -A clip(r, 1 - low, 1 + high)); where A < 0: L = min(L, -A c)
#pragma once
#include "term.hpp"

namespace weft::objective {
struct ppo_clip : token_term<> {
  static constexpr char const* name = "actor/pg_loss";
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;
  double clip_ratio_c = 3;  // > 1; infinity: no dual clip

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    T const log_ratio = t.log_prob - t.old_log_prob, l = clamp<T>(log_ratio, -20, 20), r = std::exp(l), A = t.advantage;
    T const free = -A * r, bound = -A * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high));
    token_loss<T> loss{free, l == log_ratio ? free : 0, 0};
    if (bound > free) loss = {bound, 0, 0};
    if (A < 0 && -A * T(clip_ratio_c) < loss.value) loss = {-A * T(clip_ratio_c), 0, 0};
    return scaled(t.rollout_weight, loss);
  }

  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    T const l = clamp<T>(t.log_prob - t.old_log_prob, -20, 20), r = std::exp(l), A = t.advantage;
    T const free = -A * r, bound = -A * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high));
    sums[0] += bound > free;
    sums[1] += A < 0 && (bound > free ? bound : free) > -A * T(clip_ratio_c);
    sums[2] += double(-l);
  }
};
}  // namespace weft::objective
