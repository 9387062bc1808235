// trust_region.hpp — DPPO (arXiv:2602.04879): L = -A sg(min(r, c)) lp, for tokens whose probability has not yet left the trust region in
// the direction that A pushes it. Distance between p = e^lp and p_old, the token against all others:
//   tv: |p - p_old|      kl: p_old log(p_old / p) + (1 - p_old) log((1 - p_old) / (1 - p))
#pragma once
#include "term.hpp"

namespace weft::objective {
enum class divergence : i32 { tv, kl };

template <divergence By> struct dppo : token_term<> {
  static constexpr char const* name = "actor/pg_loss";
  double threshold_low = -1, threshold_high = -1;  // of falling and of rising probability; must be set
  double clip_ratio_c = 20;

  template <class T> WEFT_HD bool outside(token<T> const& t) const {
    T const p = std::exp(t.detached), old = std::exp(t.old_log_prob);
    bool const up = t.advantage > 0;
    if (up ? p <= old : p >= old) return false;
    return distance(p, old) > T(up ? threshold_high : threshold_low);
  }
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    if (outside(t)) return {t.advantage * 0, 0, 0};  // NaN stays NaN
    T const r = std::exp(clamp<T>(t.detached - t.old_log_prob, -20, 20));
    T const slope = -t.advantage * (r < T(clip_ratio_c) ? r : T(clip_ratio_c));
    return scaled(t.rollout_weight, token_loss<T>{slope * t.log_prob, slope, 0});
  }
  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    sums[0] += outside(t);
    sums[1] -= double(clamp<T>(t.log_prob - t.old_log_prob, -20, 20));
  }

  template <class T> static WEFT_HD T distance(T p, T old) {
    if constexpr (By == divergence::tv) {
      return p > old ? p - old : old - p;
    } else {
      T const tiny = T(1e-7), rest = 1 - p > tiny ? 1 - p : tiny, old_rest = 1 - old > tiny ? 1 - old : tiny;
      return old * std::log(old / p) + old_rest * std::log(old_rest / rest);
    }
  }
};
using dppo_tv = dppo<divergence::tv>;
using dppo_kl = dppo<divergence::kl>;
}  // namespace weft::objective
