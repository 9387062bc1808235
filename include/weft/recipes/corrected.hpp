// recipes/corrected.hpp — GRPO with rollout correction: the ratio is taken to the policy as training computes it before the first update, and importance
// weights stand between that and the policy that sampled. For pools of f8e4m3 keys and values.
#pragma once
#include "../stages/correct.hpp"
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Objective = policy_objective, class Kv = f8e4m3, class Rollout = local, class Trainer = local>
using grpo_corrected = graph<
    fed_prompts<training>, fed_update<actor>,
    at<Rollout, generate<actor, training, Kv>>,
    at<host, reward<training>>,
    at<Trainer, include_scored, group_advantage>,
    pack_all,
    scored_by<log_probs_under<actor, old_log_probs>, old_log_probs, Trainer>,
    at<Trainer, weigh_rollout>, merge_corrections, at<Trainer, normalize_rollout_weights>,
    at<local,
        at<Trainer, zero<loss_sums<actor>>>,
        each<upto<epoch<actor>, passes<actor>>,
            shuffle<actor>,
            each<minibatch<actor>,
                pack<actor, trained>, count_tokens<actor, trained>,
                at<Trainer,
                    zero<gradients<actor>>,
                    each<upto<microbatch, bin_count<actor>>, policy_update<actor, Objective, old_log_probs>>,
                    adamw_update<actor>>>>>,
    kept_samples<training>, keep<advantages>, keep<group_drops>, keep<correction_all>, kept_update<actor>>;
}  // namespace weft::rl
