// recipes/ppo.hpp — one PPO step (arXiv:1707.06347) with a critic of its own and GAE. While the critic warms up, `passes<actor>` is 0.
// No edge orders the two updates, nor the two passes before them: then<> does, so that they share activation memory.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using ppo = graph<
    fed_prompts<training>, fed_update<actor>, fed_update<critic>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    at<Trainer, include_scored>,
    pack_all,
    scored_by<state_values<critic>, values, Trainer>,
    at<Trainer, rewards_of_tokens, gae>, merge_moments, at<Trainer, whiten>,
    then<update_epochs<critic, value_update<critic, value_objective>, Trainer>,
         update_epochs<actor, policy_update<actor, Objective>, Trainer>>,
    kept_samples<training>, keep<advantages>, keep<returns>, keep<values>, keep<kl_means>, kept_update<critic>, kept_update<actor>>;

// the same with a reference model: KL in the reward, in the loss, or both
template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using ppo_with_reference = graph<
    fed_prompts<training>, fed_update<actor>, fed_update<critic>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    at<Trainer, include_scored>,
    pack_all,
    then<scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
         scored_by<state_values<critic>, values, Trainer>>,
    at<Trainer, rewards_of_tokens, gae>, merge_moments, at<Trainer, whiten>,
    then<update_epochs<critic, value_update<critic, value_objective>, Trainer>,
         update_epochs<actor, policy_update<actor, Objective>, Trainer>>,
    kept_samples<training>, keep<advantages>, keep<returns>, keep<values>, keep<kl_means>, kept_update<critic>, kept_update<actor>>;
}  // namespace weft::rl
