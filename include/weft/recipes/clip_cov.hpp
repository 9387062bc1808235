// recipes/clip_cov.hpp — Clip-Cov and KL-Cov (arXiv:2505.22617): before a mini-batch's gradient its log-probs are computed once more, and the
// tokens with the highest covariance are chosen over all of it.
#pragma once
#include "reinforce_plus_plus.hpp"

// clang-format off
namespace weft::rl {
template <class Objective, class Trainer> using selecting_epochs =
    update_epochs<actor, policy_update<actor, Objective>, Trainer,
        scored_in_minibatch<log_probs_under<actor, current_log_probs<actor>, actor>, current_log_probs<actor>, actor, Trainer>,
        select_by_covariance<actor, Objective>>;

template <class Objective = selecting_losses, class Rollout = local, class Trainer = local>
using clip_cov = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    advantages_of_batch<Trainer>,
    selecting_epochs<Objective, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;

template <class Objective = selecting_losses, class Rollout = local, class Trainer = local>
using clip_cov_with_reference = graph<
    fed_prompts<training>, fed_update<actor>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    pack_all,
    scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
    advantages_of_batch<Trainer>,
    selecting_epochs<Objective, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, keep<kl_means>, kept_update<actor>>;
}  // namespace weft::rl
