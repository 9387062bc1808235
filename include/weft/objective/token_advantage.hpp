// token_advantage.hpp — advantages made of one sequence's token rewards: GAE, REINFORCE++, ReMax. One row at a time, [width] each;
// the mask says which tokens the policy produced. Tokens in between that it did not produce (tool output) are passed over: they
// neither discount nor reset. Slots where the mask is 0 get 0 and are never read.
#pragma once
#include "statistics.hpp"

namespace weft::objective {
struct gae_settings {
  double gamma = 1, lambda = 1;
};

// delta_t = r_t + gamma V_(t+1) - V_t;  g_t = delta_t + gamma lambda g_(t+1);  advantage g_t, return g_t + V_t.
// verl then whitens the advantages over the whole batch (statistics.hpp).
template <class T, class M>
WEFT_HD void gae(gae_settings const& s, size_t width, T const* reward, T const* value, M const* mask, T* advantage, T* target) {
  double next_value = 0, g = 0;
  for (size_t t = width; t-- > 0;) {
    if (mask[t] != 0) {
      double const v = double(value[t]);
      g = double(reward[t]) + s.gamma * next_value - v + s.gamma * s.lambda * g;
      next_value = v;
      advantage[t] = T(g), target[t] = T(g + v);
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

// Length-adaptive lambda (VAPO, arXiv:2504.05118)
WEFT_HD inline double adaptive_lambda(double length) {
  double const l = 1 - 1 / (0.05 * length);
  return l > 0 ? l : 0;
}
}  // namespace weft::objective
