// reward_mix.hpp — several rewards as one. A part that does not apply to an answer says `absent` and is left out of the sum; an answer to which no part
// applies has no score and is left out of its group. A part that fails or times out makes the whole fail: a sum without it would be another reward.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include <weft/train/rewards.hpp>

namespace weft::train {
inline rl::reward_result not_applicable() { return {0, rl::reward_result::absent}; }

struct reward_part {
  reward_function score;
  double weight = 1;
};
inline reward_function weighted_sum(std::vector<reward_part> parts) {
  return [parts = std::move(parts)](answer const& a) -> rl::reward_result {
    double sum = 0;
    bool any = false;
    for (reward_part const& part : parts) {
      auto const r = part.score(a);
      if (r.what == rl::reward_result::absent) continue;
      if (r.what != rl::reward_result::scored) return r;
      sum += part.weight * double(r.value);
      any = true;
    }
    return any ? scored(sum) : not_applicable();
  };
}
// Only for rows of one source.
inline reward_function for_source(std::string data_source, reward_function f) {
  return [source = std::move(data_source), f = std::move(f)](answer const& a) {
    return a.row.data_source == source ? f(a) : not_applicable();
  };
}
// Scores times a weight of the row's source; 1 for those that are not named.
inline reward_function weighted_by_source(std::vector<std::pair<std::string, double>> weights, reward_function f) {
  return [weights = std::move(weights), f = std::move(f)](answer const& a) {
    auto r = f(a);
    for (auto const& [source, weight] : weights)
      if (a.row.data_source == source) r.value *= f32(weight);
    return r;
  };
}
// Scores to [-most, most]
inline reward_function clipped(double most, reward_function f) {
  return [most, f = std::move(f)](answer const& a) {
    auto r = f(a);
    if (r.value == r.value) r.value = f32(std::clamp(double(r.value), -most, most));  // NaN stays NaN
    return r;
  };
}
}  // namespace weft::train
