// presets.hpp — what the name of a recipe stands for: an estimator of advantages, and the knobs that differ from verl's defaults. They are set where
// nobody set them, and printed like everything that is set. Sources: recipes/, docs/recipes.md.
#pragma once
#include <array>
#include <string_view>

#include <weft/io/error.hpp>

namespace weft::train {
struct preset {
  struct value {
    std::string_view key = {}, is = {};
  };
  std::string_view name, adv_estimator = {};  // no estimator: nothing is sampled
  std::array<value, 6> sets = {};
};
inline constexpr std::string_view actor_loss_mode = "actor_rollout_ref.actor.policy_loss.loss_mode",
                                  actor_aggregation = "actor_rollout_ref.actor.loss_agg_mode",
                                  actor_clip_low = "actor_rollout_ref.actor.clip_ratio_low",
                                  actor_clip_high = "actor_rollout_ref.actor.clip_ratio_high",
                                  by_deviation = "algorithm.norm_adv_by_std_in_grpo";
inline constexpr preset presets[] = {
    {"sft"},
    {"dpo"},
    {"reward_model"},
    {"distill", "grpo"},
    {"hybrid", "gae"},
    {"ppo", "gae"},
    {"grpo", "grpo"},
    {"dr_grpo", "grpo", {{{by_deviation, "false"}, {actor_aggregation, "seq-mean-token-sum-norm"}}}},
    {"dapo",
     "grpo",
     {{{actor_clip_high, "0.28"}, {"algorithm.filter_groups.enable", "true"}, {"reward_model.overlong_buffer.enable", "true"}}}},
    {"gspo",
     "grpo",
     {{{actor_loss_mode, "gspo"}, {actor_clip_low, "3e-4"}, {actor_clip_high, "4e-4"}, {actor_aggregation, "seq-mean-token-mean"}}}},
    {"reinforce", "grpo", {{{by_deviation, "false"}, {actor_loss_mode, "gpg"}}}},
    {"rloo", "rloo"},
    {"opo", "opo"},
    {"grpo_passk", "grpo_passk"},
    {"gpg", "gpg", {{{actor_loss_mode, "gpg"}}}},
    {"reinforce_plus_plus", "reinforce_plus_plus"},
    {"reinforce_plus_plus_baseline", "reinforce_plus_plus_baseline"},
    {"remax", "remax"},
};
inline constexpr std::string_view recipe_names = "sft|dpo|reward_model|distill|hybrid|ppo|grpo|dr_grpo|dapo|gspo|reinforce|rloo|opo|grpo_"
                                                 "passk|gpg|reinforce_plus_plus|reinforce_plus_plus_baseline|remax";

inline preset const& preset_of(std::string_view name) {
  for (preset const& p : presets)
    if (p.name == name) return p;
  io::refuse("algorithm.name={}: choose one of {}", io::show(name), recipe_names);
}
}  // namespace weft::train
