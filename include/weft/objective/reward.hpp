// reward.hpp — from the score of an answer to the rewards of its tokens; KL as part of the reward and the control of its weight.
#pragma once
#include "kl.hpp"
#include "statistics.hpp"

namespace weft::objective {
// r_t = score at the last token that counts, minus coefficient * kl(old, ref) at every token that counts; 0 elsewhere.
// kl_sum, if asked for, gets the mean KL of the sequence. old and ref are [width] and are not read if the coefficient is 0.
template <class T, class M> WEFT_HD double token_rewards(size_t width, T score, M const* mask, kl_estimator estimator, double coefficient,
                                                         T const* old_log_prob, T const* ref_log_prob, T* reward) {
  size_t last = width;
  double sum = 0, count = 0;
  for (size_t t = 0; t < width; ++t) {
    reward[t] = T(0);
    if (mask[t] == 0) continue;
    last = t;
    count += 1;
    if (coefficient != 0) {
      T const k = kl_of(estimator, old_log_prob[t], old_log_prob[t], ref_log_prob[t]).value;
      reward[t] = -T(coefficient) * k;
      sum += double(k);
    }
  }
  if (last < width) reward[last] += score;
  return count > 0 ? sum / count : 0;
}

struct kl_control {  // algorithm.kl_ctrl
  bool adaptive = false;
  double kl_coef = 0.001, target_kl = 0.1, horizon = 10000;
};
// The coefficient after a batch of n sequences whose KL (mean over sequences of their mean) was `kl` (arXiv:1909.08593)
WEFT_HD inline double next_kl_coefficient(kl_control const& c, double coefficient, double kl, double n) {
  return c.adaptive ? coefficient * (1 + clamp(kl / c.target_kl - 1, -0.2, 0.2) * n / c.horizon) : coefficient;
}

// DAPO's overlong shaping (arXiv:2503.14476): within `buffer` of the longest response the reward falls linearly by `penalty`
struct overlong {
  i32 max_response_length = 20480, buffer = 4096;
  double penalty = 1;
};
WEFT_HD inline double overlong_penalty(overlong const& o, i32 length) {
  double const over = double(length) - double(o.max_response_length - o.buffer), p = -over / o.buffer * o.penalty;
  return p < 0 ? p : 0;
}

struct reward_shaping {
  double clip = 0;            // rewards to [-clip, clip]; 0: not
  bool running_norm = false;  // (r - mean of the batch) / (running standard deviation + 1e-8)
};
struct running_deviation {
  double value = 0;
  bool started = false;
};  // state: 0.9 of the old, 0.1 of the batch

WEFT_HD inline running_deviation next_deviation(running_deviation const& old, moments const& batch) {
  double const now = batch.count > 1 ? std::sqrt(batch.squares / (batch.count - 1)) : 0;
  return {old.started ? 0.9 * old.value + 0.1 * now : now, true};
}
WEFT_HD inline double shaped(reward_shaping const& s, double reward, moments const& batch, running_deviation const& deviation) {
  double const r = s.clip > 0 ? clamp(reward, -s.clip, s.clip) : reward;
  return s.running_norm ? (r - batch.mean) / (deviation.value + 1e-8) : r;
}
}  // namespace weft::objective
