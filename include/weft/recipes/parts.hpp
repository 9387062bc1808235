// recipes/parts.hpp — pieces that several recipes share: what is fed and kept, and the passes of the reference and the critic.
#pragma once
#include "../stages/advantage.hpp"
#include "../stages/generate.hpp"
#include "../stages/optimizer.hpp"
#include "../stages/pack.hpp"
#include "../stages/reward.hpp"
#include "../stages/score.hpp"
#include "../stages/select.hpp"
#include "../stages/update.hpp"
#include "objectives.hpp"

// clang-format off
namespace weft::rl {
template <class Use> using fed_prompts = at<local, feed<prompts<Use>>, feed<prompt_lengths<Use>>, feed<rows<Use>>, feed<draws<Use>>, feed<sampling_of<Use>>>;
template <class Use> using kept_samples = at<local, keep<rows<Use>>, keep<tokens<Use>>, keep<lengths<Use>>, keep<finishes<Use>>, keep<log_probs<Use>>,
                                             keep<log_kept<Use>>, keep<entropies<Use>>, keep<scores<Use>>, keep<rollout_sums<Use>>>;
template <class M> using fed_update = at<local, feed<passes<M>>, feed<epoch_seed<M>>, feed<learning_rate<M>>>;
template <class M> using kept_update = at<local, keep<loss_sums<M>>, keep<gradient_norms<M>>>;

// Micro-batches of all samples, for the passes before the update.
using pack_all = at<local, written_order<scoring>, pack<scoring>>;
template <class Pass, class To, class Pool> using scored_by = at<Pool, zero<To>, each<upto<microbatch, bin_count<scoring>>, Pass>>;

// The same pass over the micro-batches of a mini-batch, under the weights as they are then.
template <class Pass, class To, class M, class Pool> using scored_in_minibatch = at<Pool, zero<To>, each<upto<microbatch, bin_count<M>>, Pass>>;

// ppo_epochs passes over the samples, each cut into mini-batches of one optimizer step, each of those into micro-batches. The schedule is a
// function of all lengths, so every device computes it; the pool computes gradients and steps. Before: what a mini-batch needs first.
template <class M, class Update, class Pool, class... Before> using update_epochs =
    at<local,
        at<Pool, zero<loss_sums<M>>>,
        each<upto<epoch<M>, passes<M>>,
            shuffle<M>,
            each<minibatch<M>,
                pack<M>, count_tokens<M>, Before...,
                at<Pool,
                    zero<gradients<M>>,
                    each<upto<microbatch, bin_count<M>>, Update>,
                    adamw_update<M>>>>>;
}  // namespace weft::rl
