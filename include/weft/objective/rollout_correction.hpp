// rollout_correction.hpp — importance weights between the policy that was trained (old) and the one that sampled (roll), where the two
// differ: FP8 keys and values, stale weights, another engine. w = exp(clip(old - roll, +-20)), a constant for the loss.
#pragma once
#include <cstdint>
#include "unit.hpp"

namespace weft::objective {
enum class rollout_level : i32 { token, sequence };  // rollout_is: each token's own ratio, or the product over the sequence
enum class rollout_bound : i32 {
  truncate,  // min(w, threshold): truncated importance sampling
  icepop,    // 0 outside [lower, threshold] (IcePop)
};
enum class rejection : i32 { none, k1, k2, k3 };  // statistic of the sequence: mean over its tokens, d = old - roll

struct rollout_correction {
  rollout_level rollout_is = rollout_level::token;
  rollout_bound bound = rollout_bound::truncate;
  double threshold = 2, lower = 0.5;
  bool weigh = true;  // false: all weights are 1, only the rejection counts
  rejection reject = rejection::none;
  double reject_above = 0;       // |mean k1|, mean k2 or mean k3 above which a sequence is left out
  bool batch_normalize = false;  // weights divided by their mean over the batch
};

struct rollout_sums {  // over tokens that count; add up over rows and ranks
  double tokens = 0, weight = 0, weight_squares = 0, high = 0, low = 0, k1 = 0, k3 = 0;
  double rejected_tokens = 0;
  double max_weight = 0;
};

// One sequence [width]: its weights, and whether it is to be left out (false: keep). Slots that do not count get 0 and are not read.
template <class T, class M> WEFT_HD bool rollout_weights(rollout_correction const& c, size_t width, T const* old_log_prob,
                                                         T const* rollout_log_prob, M const* mask, T* weight, rollout_sums& sums) {
  double total = 0, statistic = 0, n = 0;
  for (size_t t = 0; t < width; ++t) {
    if (mask[t] == 0) continue;
    double const d = double(old_log_prob[t]) - double(rollout_log_prob[t]), k3 = std::exp(clamp(d, -20.0, 20.0)) - 1 - d;
    total += d, n += 1;
    statistic += c.reject == rejection::k1 ? -d : c.reject == rejection::k2 ? d * d / 2 : k3;
    sums.k1 -= d, sums.k3 += k3;
  }
  for (size_t t = 0; t < width; ++t) {
    weight[t] = T(0);
    if (mask[t] == 0) continue;
    double const d = c.rollout_is == rollout_level::sequence ? total : double(old_log_prob[t]) - double(rollout_log_prob[t]);
    double w = std::exp(clamp(d, -20.0, 20.0));
    sums.high += w > c.threshold, sums.low += w < c.lower;
    if (c.bound == rollout_bound::truncate) w = w < c.threshold ? w : c.threshold;
    else if (w > c.threshold || w < c.lower) w = 0;
    if (!c.weigh) w = 1;
    weight[t] = T(w);
    sums.tokens += 1, sums.weight += w, sums.weight_squares += w * w;
    sums.max_weight = w > sums.max_weight ? w : sums.max_weight;
  }
  bool const reject = c.reject != rejection::none && n > 0 && std::abs(statistic / n) > c.reject_above;
  if (reject) sums.rejected_tokens += n;
  return reject;
}

// With batch_normalize: the mean weight of the whole batch becomes 1.
template <class T> WEFT_HD void normalize_weights(size_t width, rollout_sums const& of_batch, T* weight) {
  double const mean = of_batch.tokens > 0 ? of_batch.weight / of_batch.tokens : 1;
  for (size_t t = 0; t < width; ++t) weight[t] = mean > 0 ? T(double(weight[t]) / mean) : weight[t];
}

// Effective sample size as a fraction: (sum w)^2 / (n sum w^2)
WEFT_HD inline double effective_sample_size(rollout_sums const& s) {
  return s.weight_squares > 0 ? s.weight * s.weight / (s.tokens * s.weight_squares) : 0;
}
}  // namespace weft::objective
