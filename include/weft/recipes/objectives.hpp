// recipes/objectives.hpp — the losses that recipes use: typed sums of terms, with verl's names. Weights and ranges are run-time settings.
#pragma once
#include <weft/objective/objective.hpp>

namespace weft::rl {
using policy_objective = objective::sum<objective::ppo_clip, objective::entropy, objective::kl>;
using reinforce_objective = objective::sum<objective::reinforce, objective::entropy, objective::kl>;
using value_objective = objective::sum<objective::value_clip>;
using sft_objective = objective::sum<objective::sft>;
}  // namespace weft::rl
