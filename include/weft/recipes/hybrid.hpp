// recipes/hybrid.hpp — PPO, supervised fine-tuning and DPO in one step, with weights (task_weights): rollouts are sampled and scored as in ppo.hpp,
// demonstrations and pairs come with their data, and one pass over each mini-batch learns from all three. Each loss has its own denominators.
#pragma once
#include "../stages/hybrid.hpp"
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class M, class Update, class Included, class Pool, class Zeroed, class... Before> using stratified_epochs =
    at<local,
        at<Pool, Zeroed>,
        each<upto<epoch<M>, passes<M>>,
            stratified_order<M>,
            each<minibatch<M>,
                pack<M, Included>, count_tokens<M, Included>, Before...,
                at<Pool,
                    zero<gradients<M>>,
                    each<upto<microbatch, bin_count<M>>, Update>,
                    adamw_update<M>>>>>;

template <class Objective = policy_objective, class Rollout = local, class Trainer = local>
using hybrid = graph<
    fed_prompts<training>, feed<task>, fed_update<actor>, fed_update<critic>, feed<kl_coefficient>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    at<Trainer, include_scored, include_learned>,
    written_order<scoring>, pack<scoring, learned>,
    then<scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
         scored_by<state_values<critic>, values, Trainer>>,
    at<Trainer, rewards_of_tokens, gae>, merge_moments, at<Trainer, whiten>,
    then<stratified_epochs<critic, value_update<critic, value_objective>, included, Trainer, zero<loss_sums<critic>>>,
         stratified_epochs<actor, hybrid_update<actor, Objective>, learned, Trainer, zero<loss_sums<actor>, task_sums<1>, task_sums<2>>,
             count_tasks<actor>>>,
    kept_samples<training>, keep<task_sums<1>>, keep<task_sums<2>>, keep<advantages>, keep<returns>, keep<values>, keep<kl_means>,
    kept_update<critic>, kept_update<actor>>;
}  // namespace weft::rl
