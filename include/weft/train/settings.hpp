// settings.hpp — from the options of a run to the sizes and settings that its graphs are bound with. Names and defaults stand in options.hpp.
#pragma once
#include <charconv>
#include <limits>

#include <weft/io/error.hpp>
#include <weft/optim/schedule.hpp>
#include <weft/recipes/parts.hpp>
#include <weft/stages/correct.hpp>
#include <weft/stages/hybrid.hpp>
#include <weft/train/options.hpp>

namespace weft::train {
using i64 = std::int64_t;

namespace detail {
template <class Names> auto named(Names const& names, std::string const& key, std::string const& value) {
  std::string all;
  for (auto const& n : names) {
    if (value == n.name) return n;
    all += (all.empty() ? "" : ", ") + std::string(n.name);
  }
  io::refuse("{}={}: choose one of {}", key, value, all);
}
constexpr i64 shares(i64 whole, i64 each) { return each <= 0 || each >= whole ? 1 : (whole + each - 1) / each; }
}  // namespace detail

struct batch_sizes {  // counts of a step, all at least 1
  i64 prompts, group, prompt_room, room, actor_minibatches, critic_minibatches;
  i64 rollouts;  // of the prompts, those that are answered here; the first
};
inline batch_sizes sizes_of(options const& o) {
  auto const need = [](char const* name, i64 value) {
    if (value < 1) io::refuse("{}={}: it must be at least 1", name, value);
  };
  need("data.train_batch_size", o.data.train_batch_size);
  need("data.max_prompt_length", o.data.max_prompt_length);
  need("data.max_response_length", o.data.max_response_length);
  need("rollout.n", o.rollout.n);
  // cells of [prompt, group, position] are counted by i32
  i64 const most = std::numeric_limits<i32>::max(),
            samples = o.data.train_batch_size > most / o.rollout.n ? most : o.data.train_batch_size * o.rollout.n;
  if (o.data.max_response_length > most / samples)
    io::refuse("data.train_batch_size {} x rollout.n {} x max_response_length {} is more than {} tokens a step; lower one of them",
               o.data.train_batch_size, o.rollout.n, o.data.max_response_length, most);
  auto const& recipe = o.algorithm.name;
  bool const pairs = recipe == "dpo" || recipe == "reward_model", fed = pairs || recipe == "sft",
             critic = !fed && o.algorithm.adv_estimator == "gae";
  for (auto const& [name, each] : {std::pair{"actor.ppo_mini_batch_size", o.actor.ppo_mini_batch_size},
                                   {"critic.ppo_mini_batch_size", o.critic.ppo_mini_batch_size}}) {
    if (fed || (name[0] == 'c' && !critic)) continue;
    need(name, each);
    if (each > o.data.train_batch_size)
      io::refuse("{}={} is more than data.train_batch_size={}; lower it", name, each, o.data.train_batch_size);
  }
  bool const hybrid = recipe == "hybrid";
  i64 const updates = fed ? 1 : detail::shares(o.data.train_batch_size, o.actor.ppo_mini_batch_size);
  if (hybrid) {
    if (o.rollout.n < 2) io::refuse("rollout.n={}: hybrid needs at least 2, a pair is two samples of a prompt", o.rollout.n);
    for (i64 each : {o.data.train_batch_size, o.hybrid.sft_batch_size, o.hybrid.dpo_batch_size})
      if (each % updates)
        io::refuse("hybrid cuts every source into the same {} mini-batches; data.train_batch_size={}, hybrid.sft_batch_size={} and "
                   "hybrid.dpo_batch_size={} must be multiples of that",
                   updates, o.data.train_batch_size, o.hybrid.sft_batch_size, o.hybrid.dpo_batch_size);
  }
  return {o.data.train_batch_size + (hybrid ? o.hybrid.sft_batch_size + o.hybrid.dpo_batch_size : 0),
          pairs ? 2
          : fed ? 1
                : o.rollout.n,
          o.data.max_prompt_length,
          o.data.max_response_length + (recipe == "reward_model"),  // the score is read after the last token
          updates,
          fed      ? 1
          : hybrid ? updates
                   : detail::shares(o.data.train_batch_size, o.critic.ppo_mini_batch_size),
          o.data.train_batch_size};
}

// ---- settings of graphs ---------------------------------------------------------------------------------
template <class Use> rl::token_budget<Use> budget_of(i64 tokens, i64 samples, bool recompute, i32 together = 1) {
  return {i32(tokens), i32(samples < 0 ? 0 : samples), i32(recompute), together};
}

template <class Use> rl::generation<Use> generation_of(options const& o, model::config const& c, i64 prompts, i64 group) {
  rl::generation<Use> g;
  i64 const context = o.data.max_prompt_length + o.data.max_response_length;
  if (context > c.max_positions)
    io::refuse("max_prompt_length {} + max_response_length {} is more than the model's context of {}", o.data.max_prompt_length,
               o.data.max_response_length, c.max_positions);
  if (o.rollout.max_num_seqs < 1) io::refuse("rollout.max_num_seqs={}: it must be at least 1", o.rollout.max_num_seqs);
  g.context = i32(context);
  g.slots = i32(std::min(o.rollout.max_num_seqs, prompts * group));
  g.batched_tokens = i32(std::max<i64>(g.slots, std::min(o.rollout.max_num_batched_tokens, prompts * context)));
  i32 const most = rollout::most_pages(g);
  i64 const needed = i64(kv::pages_for(size_t(context - 1)));
  if (o.rollout.kv_pages > 0 && o.rollout.kv_pages < needed)
    io::refuse("rollout.kv_pages={}: one sequence of {} tokens needs {}", o.rollout.kv_pages, context, needed);
  g.pages = o.rollout.kv_pages > 0 ? i32(std::min<i64>(o.rollout.kv_pages, most)) : most;
  return g;
}
inline kernels::adamw_options optimizer_of(optimizer_options const& o) {
  using kernels::moment_format;
  auto const moments = o.moment_dtype == "bf16" ? moment_format::bf16 : o.moment_dtype == "fp8" ? moment_format::f8 : moment_format::f32;
  return {o.betas[0], o.betas[1], o.eps, o.weight_decay, o.clip_grad, moments, o.master_weights};
}
inline optim::schedule schedule_of(optimizer_options const& o, i64 steps) {
  optim::schedule s;
  s.lr = o.lr;
  s.warmup_style = o.warmup_style == "cosine" ? optim::decay::cosine : optim::decay::constant;
  s.lr_warmup_steps = o.lr_warmup_steps;
  s.lr_warmup_steps_ratio = o.lr_warmup_steps_ratio;
  s.min_lr_ratio = o.min_lr_ratio;
  s.total_training_steps = steps;
  return s;
}
inline kernels::sampling training_sampling(options const& o) {
  kernels::sampling s;
  s.temperature = f32(o.rollout.temperature);
  s.top_k = i32(o.rollout.top_k);
  s.top_p = f32(o.rollout.top_p);
  s.min_p = f32(o.rollout.min_p);
  return s;
}
inline kernels::sampling validation_sampling(options const& o) {
  kernels::sampling s;
  s.temperature = o.rollout.val_kwargs.do_sample ? f32(o.rollout.val_kwargs.temperature) : 0;
  s.top_k = i32(o.rollout.val_kwargs.top_k);
  s.top_p = f32(o.rollout.val_kwargs.top_p);
  return s;
}

template <class Objective> Objective aggregated_as(options const& o, std::string const& mode) {
  Objective loss;
  loss.loss_agg_mode = detail::named(objective::aggregation_names, "loss_agg_mode", mode).mode;
  loss.loss_scale_factor = o.actor.loss_scale_factor > 0 ? o.actor.loss_scale_factor : double(o.data.max_response_length);
  return loss;
}
namespace detail {
template <class Term> void set_term(options const& o, Term& term) {
  auto const& a = o.actor;
  if constexpr (requires { term.clip_ratio_low; }) term.clip_ratio_low = a.clip_ratio_low, term.clip_ratio_high = a.clip_ratio_high;
  if constexpr (std::is_base_of_v<objective::ppo_clip, Term>) term.clip_ratio_c = a.clip_ratio_c;
  if constexpr (std::is_base_of_v<objective::sapo, Term>) term.tau_pos = a.tau_pos, term.tau_neg = a.tau_neg;
  if constexpr (requires { term.threshold_low; }) term.threshold_low = a.threshold_low, term.threshold_high = a.threshold_high;
  if constexpr (std::is_base_of_v<objective::kl_cov, Term>) term.ratio = a.kl_cov_ratio, term.ppo_kl_coef = a.ppo_kl_coef;
  if constexpr (std::is_base_of_v<objective::clip_cov, Term>)
    term.ratio = a.clip_cov_ratio, term.covariance_low = a.clip_cov_lb, term.covariance_high = a.clip_cov_ub;
}
template <class First, class... Rest> void set_terms(options const& o, objective::sum<First, Rest...>& loss) {
  set_term(o, loss.template of<First>());
  (set_term(o, loss.template of<Rest>()), ...);
}
}  // namespace detail
// The terms of an objective that options speak of; those of a user's own keep their settings.
template <class Objective> Objective policy_sum_of(options const& o) {
  auto loss = aggregated_as<Objective>(o, o.actor.loss_agg_mode);
  detail::set_terms(o, loss);
  if constexpr (std::is_base_of_v<objective::entropy, Objective>) loss.template of<objective::entropy>().weight = o.actor.entropy_coeff;
  auto const estimator = detail::named(objective::kl_estimator_names, "kl_loss_type", o.actor.kl_loss_type).estimator;
  if constexpr (std::is_base_of_v<objective::kl, Objective>) {
    auto& kl = loss.template of<objective::kl>();
    kl.weight = o.actor.use_kl_loss ? o.actor.kl_loss_coef : 0;
    kl.estimator = estimator;
  }
  return loss;
}
template <class Objective> Objective policy_objective_of(options const& o) {
  if constexpr (requires { Objective::names; }) {  // a choice
    Objective all;
    all.each([&]<class Sum>(Sum& one) { one = policy_objective_of<Sum>(o); });
    std::string modes;
    all.chosen = -1;
    for (i32 i = 0; i < i32(Objective::size); ++i) {
      if (o.actor.loss_mode == Objective::names[i]) all.chosen = i;
      modes += (i ? ", " : "") + std::string(Objective::names[i]);
    }
    if (all.chosen < 0) io::refuse("actor.policy_loss.loss_mode={}: this graph has {}", o.actor.loss_mode, modes);
    if (o.actor.loss_mode.starts_with("dppo") && (o.actor.threshold_low < 0 || o.actor.threshold_high < 0))
      io::refuse("actor.policy_loss.loss_mode={}: set policy_loss.threshold_low and threshold_high", o.actor.loss_mode);
    return all;
  } else {
    return policy_sum_of<Objective>(o);
  }
}
inline void set_dpo(options const& o, objective::dpo& dpo) {
  auto const& type = o.dpo.loss_type;
  if ((type == "cdpo" || type == "robust") != (o.dpo.label_smoothing > 0))
    io::refuse("dpo.label_smoothing={} with dpo.loss_type={}: cdpo and robust need one above 0, the others have none",
               o.dpo.label_smoothing, type);
  dpo.loss = type == "ipo"      ? objective::dpo_loss::ipo
             : type == "hinge"  ? objective::dpo_loss::hinge
             : type == "robust" ? objective::dpo_loss::robust
                                : objective::dpo_loss::sigmoid;
  dpo.beta = o.dpo.beta, dpo.label_smoothing = o.dpo.label_smoothing;
}
// Of recipes whose samples have no advantages.
template <class Objective> Objective plain_objective_of(options const& o) {
  auto loss = aggregated_as<Objective>(o, o.actor.loss_agg_mode);
  if constexpr (std::is_base_of_v<objective::dpo, Objective>) set_dpo(o, loss.template of<objective::dpo>());
  if constexpr (std::is_base_of_v<objective::reverse_kl, Objective>)
    loss.template of<objective::reverse_kl>().best = o.distill.top_k > 0 ? i32(o.distill.top_k) : 0;
  return loss;
}
inline rl::hybrid_settings hybrid_of(options const& o, batch_sizes const& z) {
  return {{o.task_weights.ppo, o.task_weights.sft, o.task_weights.dpo}, i32(z.actor_minibatches)};
}
inline rl::pairs_objective pairs_objective_of(options const& o) {
  rl::pairs_objective loss;
  set_dpo(o, loss.of<rl::preferred>());
  return loss;
}
inline rl::value_objective value_objective_of(options const& o) {
  auto loss = aggregated_as<rl::value_objective>(o, o.critic.loss_agg_mode);
  loss.of<objective::value_clip>().cliprange_value = o.critic.cliprange_value;
  return loss;
}
inline rl::group_baseline baseline_of(options const& o) {
  rl::group_baseline b;
  b.grpo.norm_by_std = o.algorithm.norm_adv_by_std_in_grpo;
  b.gamma = o.algorithm.gamma;
  using rl::group_estimator;
  for (auto const& [name, estimator] : {std::pair{"rloo", group_estimator::rloo},
                                        {"opo", group_estimator::opo},
                                        {"grpo_passk", group_estimator::grpo_passk},
                                        {"gpg", group_estimator::gpg},
                                        {"reinforce_plus_plus", group_estimator::reinforce_plus_plus},
                                        {"reinforce_plus_plus_baseline", group_estimator::reinforce_plus_plus_baseline}})
    if (o.algorithm.adv_estimator == name) b.estimator = estimator;
  return b;
}
inline objective::overlong overlong_of(options const& o) {  // buffer 0: none
  i64 const room = o.data.max_response_length, buffer = o.overlong.len < 0 ? std::max<i64>(1, room / 5) : o.overlong.len;
  if (!o.overlong.enable) return {i32(room), 0, 0};
  if (buffer > room || buffer == 0)
    io::refuse("reward_model.overlong_buffer.len={}: expected 1 to data.max_response_length={}", o.overlong.len, room);
  return {i32(room), i32(buffer), o.overlong.penalty_factor};
}
// Estimators that scale over the whole batch, and KL in the reward, need a graph with token rewards.
inline bool wants_batch(options const& o) {
  auto const& name = o.algorithm.adv_estimator;
  return name == "gpg" || name.starts_with("reinforce_plus_plus") || o.algorithm.use_kl_in_reward;
}
inline objective::rollout_correction correction_of(options const& o) {
  auto const& c = o.algorithm.rollout_correction;
  objective::rollout_correction r;
  std::string const& limits = c.rollout_is_threshold;
  auto const number = [&](std::string_view text) {
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0))
      io::refuse("algorithm.rollout_correction.rollout_is_threshold={}: expected a number above 0, or two such as 0.5_5", io::show(limits));
    return value;
  };
  auto const cut = limits.find('_');
  r.threshold = number(std::string_view(limits).substr(cut == limits.npos ? 0 : cut + 1));
  r.lower = cut == limits.npos ? 1 / r.threshold : number(std::string_view(limits).substr(0, cut));
  r.bound = cut == limits.npos ? objective::rollout_bound::truncate : objective::rollout_bound::icepop;
  r.rollout_is = c.rollout_is == "sequence" ? objective::rollout_level::sequence : objective::rollout_level::token;
  r.weigh = !c.rollout_is.empty();
  r.batch_normalize = c.rollout_is_batch_normalize;
  r.reject = c.rollout_rs.empty()            ? objective::rejection::none
             : c.rollout_rs == "seq_mean_k1" ? objective::rejection::k1
             : c.rollout_rs == "seq_mean_k2" ? objective::rejection::k2
                                             : objective::rejection::k3;
  r.reject_above = c.rollout_rs_threshold;
  if (!c.rollout_rs.empty() && c.rollout_rs_threshold < 0)
    io::refuse("algorithm.rollout_correction.rollout_rs={}: set rollout_rs_threshold", c.rollout_rs);
  return r;
}
inline bool wants_correction(options const& o) {
  return !o.algorithm.rollout_correction.rollout_is.empty() || !o.algorithm.rollout_correction.rollout_rs.empty();
}
inline bool wants_reference(options const& o) {
  return o.algorithm.name == "hybrid" || o.actor.use_kl_loss || o.algorithm.use_kl_in_reward;
}
}  // namespace weft::train
