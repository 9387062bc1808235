// recipes/grpo.hpp — one GRPO step (arXiv:2402.03300). Reads top to bottom like the dataflow; Rollout and Trainer say how devices cut it.
// Kv is the element of the KV pool. With f8e4m3 the policy that sampled is not quite the one that trains: its log-probs are the old ones, so
// the first ratio is not 1 and carries the difference, which actor/ppo_kl shows.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Objective = policy_objective, class Rollout = local, class Trainer = local, class Kv = real>
using grpo = graph<
    fed_prompts<training>, fed_update<actor>,
    at<Rollout, generate<actor, training, Kv>>,
    at<host, reward<training>>,
    at<Trainer, include_scored, group_advantage>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, kept_update<actor>>;

// the same, held near a reference model by a KL term in the loss
template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using grpo_with_reference = graph<
    fed_prompts<training>, fed_update<actor>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    at<Trainer, include_scored, group_advantage>,
    pack_all,
    scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
    update_epochs<actor, policy_update<actor, Objective>, Trainer>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, kept_update<actor>>;
}  // namespace weft::rl
