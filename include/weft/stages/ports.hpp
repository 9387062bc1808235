// stages/ports.hpp — the data dictionary of every recipe: models, dims, settings and ports. A stage names only what stands here.
#pragma once
#include <weft/weft.hpp>
#include <weft/model/config.hpp>
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/assemble.hpp>
#include <weft/kernels/sampling.hpp>
#include <weft/objective/statistics.hpp>
#include <weft/objective/unit.hpp>
#include <weft/rollout/request.hpp>
#include <weft/rollout/settings.hpp>

// clang-format off
namespace weft::rl {
// ---- models, and what a batch is for ------------------------------------------------------------------
struct actor {};
struct reference {};
struct critic {};
struct teacher {};
struct training {};                                           // prompts of a step, n samples each
struct validation {};                                         // held-out prompts, answered greedily
struct greedy {};                                             // the prompts of a step, one greedy answer each (ReMax)
struct scoring {};                                            // how log-prob and value passes before the update are packed

// ---- dims ---------------------------------------------------------------------------------------------
template <class Use> struct prompt : dim {};                  // prompts of a batch
template <class Use> struct group : dim {};                   // samples of a prompt
template <class Use> struct prompt_position : dim {};         // room for a prompt; prompt_lengths says how much of it is one
template <class Use> struct position : dim {};                // room for a response
struct slot : dim {                                           // samples of a step, in the order of an epoch
  static size_t of(prompt<training> const& p, group<training> const& g) { return p.size * g.size; }
};
template <class M> struct epoch : dim {};                     // ppo_epochs: passes over one rollout, at most
template <class M> struct minibatch : part<slot> {};          // one optimizer step each
struct microbatch : dim {                                     // the most there can be; bin_count says how many there are
  static size_t of(slot const& s) { return s.size; }
};
struct lane : dim {};                                         // data-parallel devices of the trainer
struct pair : fixed<2> {};
struct statistic : fixed<16> {};                              // sums that metrics are made of, one meaning for each index
struct packed_field : fixed<kernels::batch_fields> {};        // see stages/batch.hpp

// ---- settings -----------------------------------------------------------------------------------------
template <class M> struct config : model::config {};
template <class M> struct optimizer : kernels::adamw_options {};
// Of a micro-batch: ppo_max_token_len_per_gpu and ppo_micro_batch_size_per_gpu (0: any); recompute: enable_gradient_checkpointing.
// together: so many samples of the order, one behind the other, stand in one micro-batch (the two of a pair).
template <class Use> struct token_budget { i32 tokens = 16384, samples = 0, recompute = 0, together = 1; };

template <class Use> struct generation : rollout::settings {};   // slots, pages, tokens of a forward pass
// How samples are drawn and when they end; what it points to is borrowed and outlives the bound graph.
template <class Use> struct decoding {
  std::uint64_t seed = 1;
  i32 sampled_ids = 0;                                        // ids from here on are never drawn (beyond the tokenizer); 0: none are
  i32 bias_count = 0;
  i32 const* bias_ids = nullptr;                              // [bias_count]
  f32 const* bias = nullptr;                                  // [bias_count]
  rollout::stopping stop = {};
  rollout::observer<f32> watch = {};                          // the journal
};

// ---- computed dims ------------------------------------------------------------------------------------
template <class M> struct parameters : dim { static size_t of(config<M> const& c) { return model::parameter_count(c); } };
template <class M> struct master_parameters : dim {           // none where the weights themselves are stepped
  static size_t of(computes_in const& e, config<M> const& c, optimizer<M> const& o) {
    return e.bytes < sizeof(f32) && o.masters ? model::parameter_count(c) : 0;
  }
};
template <class M> struct moment_bytes : dim {
  static size_t of(config<M> const& c, optimizer<M> const& o) { return kernels::moment_layout_of(o.moments, model::parameter_count(c)).end; }
};
template <class M> struct head_width : dim { static size_t of(config<M> const& c) { return size_t(c.head_dim); } };
template <class M> struct vocabulary : dim { static size_t of(config<M> const& c) { return size_t(c.vocab); } };
template <class M> struct hidden_width : dim { static size_t of(config<M> const& c) { return size_t(c.hidden); } };
struct rope_position : dim {};                                // the longest sequence that any graph runs
// Room of a micro-batch, and of one entry more for cu_seqlens. A GPU computes all of it at any fill, in products of 256 rows.
template <class Use> struct packed_token : dim {
  static size_t of(computes_in const& e, token_budget<Use> const& b, prompt_position<training> const& p, position<training> const& r) {
    size_t const least = size_t(b.together) * (p.size + r.size), tokens = size_t(b.tokens) > least ? size_t(b.tokens) : least,
                 step = e.bytes == sizeof(bf16) ? 256 : 1;
    return (tokens + step - 1) / step * step + 1;
  }
};
struct head_row : dim {                                       // rows of logits that exist at a time
  static size_t of(computes_in const& e) { return e.bytes == sizeof(bf16) ? 4096 : 256; }
};
template <class M, class Use> struct activation_room : dim {
  static size_t of(computes_in const& e, config<M> const& c, token_budget<Use> const& b, packed_token<Use> const& t) {
    return model::activation_count(c, t.size - 1, b.recompute != 0, e.bytes);
  }
};

template <class M, class Use> struct rollout_ints : dim {
  static size_t of(computes_in const& e, generation<Use> const& g, config<M> const& c) {
    return rollout::workspace_sizes_of<real>(g, c, e.bytes == sizeof(bf16)).ints;
  }
};
template <class M, class Use> struct rollout_reals : dim {
  static size_t of(computes_in const& e, generation<Use> const& g, config<M> const& c) {
    return rollout::workspace_sizes_of<real>(g, c, e.bytes == sizeof(bf16)).reals;
  }
};
template <class M, class Use> struct rollout_logits : dim {
  static size_t of(computes_in const& e, generation<Use> const& g, config<M> const& c) {
    return rollout::workspace_sizes_of<real>(g, c, e.bytes == sizeof(bf16)).logits;
  }
};
template <class M, class Use, class Kv> struct rollout_pool : dim {
  static size_t of(generation<Use> const& g, config<M> const& c) { return rollout::workspace_sizes_of<Kv>(g, c).pool; }
};

// ---- ports: prompts and samples -----------------------------------------------------------------------
template <class Use> struct prompts        : port<i32, prompt<Use>, prompt_position<Use>> {};
template <class Use> struct prompt_lengths : port<i32, prompt<Use>> {};
template <class Use> struct rows           : port<i32, prompt<Use>> {};             // which row of the data set; -1: no prompt here
template <class Use> struct draws          : port<std::uint32_t, prompt<Use>> {};   // epoch x rows + row: its place in all randomness
template <class Use> struct sampling_of    : port<kernels::sampling, prompt<Use>> {};
template <class Use> struct tokens         : port<i32, prompt<Use>, group<Use>, position<Use>> {};
template <class Use> struct lengths        : port<i32, prompt<Use>, group<Use>> {};
template <class Use> struct finishes       : port<i32, prompt<Use>, group<Use>> {};   // rollout::finish
template <class Use> struct log_probs      : port<f32, prompt<Use>, group<Use>, position<Use>> {   // after temperature, before filters
  using kind = objective::log_probs<objective::full, objective::tempered>;   // an objective that reads another kind does not compile
};
template <class Use> struct log_kept       : port<f32, prompt<Use>, group<Use>, position<Use>> {};   // log of the mass that filters kept
template <class Use> struct entropies      : port<f32, prompt<Use>, group<Use>, position<Use>> {};

template <class Use> struct rollout_sums   : sum_over<port<double, statistic>, prompt<Use>> {};   // rollout::counters, in order

// A reward is a sum type: a number, or the reason why there is none. Nothing without a number counts as 0.
struct reward_result {
  enum status : i32 { scored, error, timeout, not_finite, absent };
  f32 value = 0;
  i32 what = absent;
};
template <class Use> struct scores         : port<reward_result, prompt<Use>, group<Use>> {};

// ---- ports: scores to advantages ----------------------------------------------------------------------
using per_token = port<f32, prompt<training>, group<training>, position<training>>;
struct ref_log_probs  : per_token {};
struct old_log_probs  : per_token { using kind = log_probs<training>::kind; };   // of the policy before the step's first update, computed as training computes
struct rollout_weights : per_token {};                         // importance weights between that policy and the one that sampled
template <class M> struct current_log_probs : per_token {};    // at the start of a mini-batch
struct selected       : port<i32, prompt<training>, group<training>, position<training>> {};   // 1: a token that the loss treats apart (objective/covariance.hpp)
struct values         : per_token {};
struct token_rewards  : per_token {};
struct advantages     : per_token {};
struct returns        : per_token {};
struct included       : port<i32, prompt<training>, group<training>> {};   // 1: a sample with a score and tokens; 0: left out, counted
struct response_mask  : port<i32, prompt<training>, group<training>, position<training>> {};   // 1: a token of an included sample
struct group_drops    : port<i32, prompt<training>> {};        // 1: fewer than two samples of the group had a score
struct row_moments    : port<objective::moments, prompt<training>, group<training>> {};
struct batch_moments  : port<objective::moments> {};
struct kl_means       : port<double, prompt<training>, group<training>> {};   // mean of a sample's KL to the reference

// ---- ports: mini-batches and micro-batches ------------------------------------------------------------
struct range {
  i32 begin, end;
  i32 tokens = 0, rows = 0;                                   // room that a batch of them needs: of tokens, and of rows that predict
};
template <class M> struct epoch_seed   : port<std::uint32_t, epoch<M>> {};   // 0: keep the order
template <class Use> struct order      : port<i32, slot> {};                 // sample ids; a mini-batch is a share of them
template <class Use> struct bin_order  : port<i32, slot, lane> {};           // samples of a lane by their place there, bin after bin
template <class Use> struct bins       : port<range, microbatch, lane> {     // a micro-batch is a range of bin_order
  static u64 size_class(range const& r) { return u64(u32(r.tokens)) << 32 | u32(r.rows); }
};
template <class Use> struct bin_count  : port<i32> {};
template <class Use> struct tallies    : port<i32, pair> {};                 // tokens and sequences that count, over all lanes, once per mini-batch

// ---- ports: models ------------------------------------------------------------------------------------
template <class M> struct weights        : port<real, parameters<M>> {};
template <class M> struct masters        : port<f32, master_parameters<M>> {};   // the weights that the optimizer steps, in f32
template <class M> struct rope_table     : port<f32, rope_position, head_width<M>> {};
template <class M> struct moments        : port<std::uint8_t, moment_bytes<M>> {};   // kernels/moments.hpp
template <class M> struct updates_done   : port<i32> {};                     // optimizer steps since the start
template <class M> struct gradients      : sum_over<port<f32, parameters<M>>, prompt<training>> {};
template <class M> struct loss_sums      : sum_over<port<double, statistic>, prompt<training>> {};
template <class M> struct gradient_norms : port<f32, epoch<M>, minibatch<M>> {};   // before clipping; NaN: the update was left out
template <class M> struct learning_rate  : port<f32> {};
template <class M> struct passes         : port<i32> {};                     // epochs to run in this step; 0: the model is left as it is (critic_warmup)
struct kl_coefficient                    : port<f32> {};

// ---- ports: scratch -----------------------------------------------------------------------------------
template <class Use> struct packed                 : port<i32, packed_field, packed_token<Use>> {};      // see stages/batch.hpp
template <class M, class Use> struct activations   : port<real, activation_room<M, Use>> {};
template <class M, class Use> struct hidden        : port<real, packed_token<Use>, hidden_width<M>> {};   // of every token
template <class M, class Use> struct head_hidden   : port<real, pair, packed_token<Use>, hidden_width<M>> {};   // of the rows that predict, and its gradient
template <int> struct token_numbers : per_token {};            // of the tokens of a mini-batch, one behind the other
template <int> struct token_indices : port<i32, prompt<training>, group<training>, position<training>> {};
struct group_numbers                                : port<f32, pair, group<training>> {};            // scores of a group, and its advantages
template <class Use> struct row_numbers            : port<f32, packed_field, packed_token<Use>> {};      // what a head reads and gives for each row
template <class M> struct logit_pair             : port<real, pair, head_row, vocabulary<M>> {};   // of a model and of its teacher
template <class M> struct logits                   : port<real, head_row, vocabulary<M>> {};
template <class M, class Use> struct rollout_index : port<i32, rollout_ints<M, Use>> {};
template <class M, class Use> struct rollout_rows  : port<real, rollout_reals<M, Use>> {};
template <class M, class Use> struct draw_logits   : port<real, rollout_logits<M, Use>> {};
template <class M, class Use, class Kv> struct kv_pool : port<Kv, rollout_pool<M, Use, Kv>> {};          // pages of 64 tokens
}  // namespace weft::rl
