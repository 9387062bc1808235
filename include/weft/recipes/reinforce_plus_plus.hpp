// recipes/reinforce_plus_plus.hpp — REINFORCE++ (arXiv:2501.03262): token rewards, with KL in them where there is a reference, and advantages that
// are scaled over the whole batch. Every group estimator runs in it too: GPG, REINFORCE++-baseline, and GRPO with KL in the reward.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Trainer> using advantages_of_batch =
    at<local, at<Trainer, include_scored, rewards_of_tokens, group_advantage>, merge_moments, at<Trainer, scale_advantages>>;

template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using reinforce_plus_plus = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    advantages_of_batch<Trainer>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;

template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using reinforce_plus_plus_with_reference = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    pack_all,
    scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
    advantages_of_batch<Trainer>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;
}  // namespace weft::rl
