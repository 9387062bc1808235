// recipes/objectives.hpp — the losses that recipes use: typed sums of terms, with verl's names. Weights and ranges are run-time settings.
#pragma once
#include <weft/objective/objective.hpp>

namespace weft::rl {
template <class Term> using policy_sum = objective::sum<Term, objective::entropy, objective::kl>;
using policy_objective = policy_sum<objective::ppo_clip>;
using value_objective = objective::sum<objective::value_clip>;
using sft_objective = objective::sum<objective::sft>;
using dpo_objective = objective::sum<objective::dpo>;
using reward_objective = objective::sum<objective::bradley_terry>;
using distill_objective = objective::sum<objective::reverse_kl>;

// actor.policy_loss.loss_mode: one of these at run time
struct policy_losses : objective::choice<policy_sum<objective::ppo_clip>, policy_sum<objective::gspo>, policy_sum<objective::cispo>,
                                         policy_sum<objective::sapo>, policy_sum<objective::geo_mean>, policy_sum<objective::reinforce>,
                                         policy_sum<objective::dppo_tv>, policy_sum<objective::dppo_kl>> {
  static constexpr char const* names[] = {"vanilla", "gspo", "cispo", "sapo", "geo_mean", "gpg", "dppo_tv", "dppo_kl"};
};
// those that need a pass over the mini-batch first
struct selecting_losses : objective::choice<policy_sum<objective::clip_cov>, policy_sum<objective::kl_cov>> {
  static constexpr char const* names[] = {"clip_cov", "kl_cov"};
};
}  // namespace weft::rl
