// token_advantage.hpp — advantages made of one sequence's token rewards: GAE, REINFORCE++, ReMax. One row at a time, [width] each;
// the mask says which tokens the policy produced. Tokens in between that it did not produce (tool output) are passed over: they
// neither discount nor reset. Slots where the mask is 0 get 0 and are never read.
#pragma once
#include "statistics.hpp"

namespace weft::objective {
// Length-adaptive lambda (VAPO, arXiv:2504.05118) of a sequence with so many tokens
WEFT_HD inline double adaptive_lambda(double length) {
  double const l = 1 - 1 / (0.05 * length);
  return l > 0 ? l : 0;
}

struct gae_settings {
  double gamma = 1, lambda = 1;
  double critic_lambda = -1;     // of the returns (decoupled GAE, VC-PPO); negative: lambda
  bool length_adaptive = false;  // lambda := adaptive_lambda(length); needs a critic_lambda
};

// delta_t = r_t + gamma V_(t+1) - V_t;  g_t = delta_t + gamma lambda g_(t+1);  advantage g_t, return g_t + V_t.
// verl then whitens the advantages over the whole batch (statistics.hpp).
template <class T, class M>
WEFT_HD void gae(gae_settings const& s, size_t width, T const* reward, T const* value, M const* mask, T* advantage, T* target) {
  double lambda = s.lambda, length = 0;
  if (s.length_adaptive) {
    for (size_t t = 0; t < width; ++t) length += mask[t] != 0;
    lambda = adaptive_lambda(length);
  }
  double const critic_lambda = s.critic_lambda < 0 ? lambda : s.critic_lambda;
  double next_value = 0, g = 0, critic_g = 0;
  for (size_t t = width; t-- > 0;) {
    if (mask[t] != 0) {
      double const v = double(value[t]), delta = double(reward[t]) + s.gamma * next_value - v;
      g = delta + s.gamma * lambda * g;
      critic_g = delta + s.gamma * critic_lambda * critic_g;
      next_value = v;
      advantage[t] = T(g), target[t] = T(critic_g + v);
    } else {
      advantage[t] = target[t] = T(0);
    }
  }
}

// Discounted reward from here to the end. REINFORCE++: advantage = the return, whitened over the whole batch.
template <class T, class M> WEFT_HD void returns(double gamma, size_t width, T const* reward, M const* mask, T* target) {
  double g = 0;
  for (size_t t = width; t-- > 0;)
    if (mask[t] != 0) target[t] = T(g = double(reward[t]) + gamma * g);
    else target[t] = T(0);
}

// ReMax: undiscounted return minus the reward of the greedy answer to the same prompt
template <class T, class M> WEFT_HD void remax(size_t width, T const* reward, T baseline, M const* mask, T* advantage, T* target) {
  returns(1, width, reward, mask, target);
  for (size_t t = 0; t < width; ++t) advantage[t] = mask[t] != 0 ? target[t] - baseline : T(0);
}

// The advantage of a sequence, given to each of its tokens
template <class T, class M> WEFT_HD void broadcast(size_t width, T of_sequence, M const* mask, T* advantage) {
  for (size_t t = 0; t < width; ++t) advantage[t] = mask[t] != 0 ? of_sequence : T(0);
}

// Optimal token baseline over the n answers to one prompt, all [n, width]: W_t = sum to t of (1 - 2 pi + sum of pi^2 over the vocabulary)
// times the squared importance weight; baseline of a step = sum of G W / sum of W over the answers that have it; A = G - baseline.
// A step that only one answer has gets baseline 0. square_sum: sum of pi^2; weight: null for 1; path: scratch [n, width].
template <class T, class M> WEFT_HD void optimal_token_baseline(size_t n, size_t width, T const* reward, T const* log_prob,
                                                                T const* square_sum, T const* weight, M const* mask, double* path,
                                                                T* advantage, T* target) {
  for (size_t j = 0; j < n; ++j) {
    size_t const row = j * width;
    returns(1, width, reward + row, mask + row, target + row);
    double sum = 0;
    for (size_t i = row; i < row + width; ++i) {
      if (mask[i] != 0) {
        double const w = weight ? double(weight[i]) : 1;
        sum += (1 - 2 * std::exp(double(log_prob[i])) + double(square_sum[i])) * w * w;
      }
      path[i] = sum;
    }
  }
  for (size_t t = 0; t < width; ++t) {
    double numerator = 0, denominator = 0, count = 0;
    for (size_t i = t; i < n * width; i += width)
      if (mask[i] != 0) numerator += double(target[i]) * path[i], denominator += path[i], count += 1;
    double const baseline = count > 1 ? numerator / (denominator + 1e-8) : 0;
    for (size_t i = t; i < n * width; i += width) advantage[i] = mask[i] != 0 ? T(double(target[i]) - baseline) : T(0);
  }
}
}  // namespace weft::objective
