// recipes/remax.hpp — ReMax (arXiv:2310.10505): the baseline of a prompt is the reward of its greedy answer.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Rollout> using remax_rollout =
    at<local,
        at<Rollout, generate<actor, training>>, ask_greedily, at<Rollout, generate<actor, greedy>>,
        at<host, reward<training>>, at<host, reward<greedy>>>;

template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using remax = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    remax_rollout<Rollout>,
    at<Trainer, include_scored, rewards_of_tokens, remax_advantage>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, kept_samples<greedy>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;

template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using remax_with_reference = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    remax_rollout<Rollout>,
    pack_all,
    scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
    at<Trainer, include_scored, rewards_of_tokens, remax_advantage>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, kept_samples<greedy>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;
}  // namespace weft::rl
