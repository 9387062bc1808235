// step_metrics.hpp — the numbers of a step under verl's names, from the ports that the graph keeps. Each is a numerator and a denominator.
#pragma once
#include <weft/io/metrics.hpp>
#include <weft/recipes/parts.hpp>
#include <weft/stages/correct.hpp>

namespace weft::train {
inline void add_spread(io::metrics& m, std::string const& name, double value) {  // NAME/mean, /max, /min over everything added
  m.add(name + "/mean", value, 1, io::reduction::mean);
  m.add(name + "/max", value, 1, io::reduction::max);
  m.add(name + "/min", value, 1, io::reduction::min);
}

// Prompts, responses and scores; `capacity` is the room for a response, `group` the samples of a prompt.
struct sample_columns {
  i32 const *prompt_lengths, *lengths, *finishes;
  rl::reward_result const* scores;
  size_t samples, group, capacity;
};
inline void add_sample_metrics(io::metrics& m, sample_columns const& c) {
  using io::reduction;
  double tokens = 0;
  for (size_t s = 0; s < c.samples; ++s) {
    auto const finish = rollout::finish(c.finishes[s]);
    auto const& score = c.scores[s];
    i32 const prompt = c.prompt_lengths[s / c.group], response = c.lengths[s];
    if (prompt == 0) continue;
    bool const aborted = finish == rollout::finish::aborted;
    if (score.what == rl::reward_result::scored) add_spread(m, "critic/score", double(score.value));
    m.add("reward/error_ratio", score.what != rl::reward_result::scored, 1, reduction::mean);
    m.add("reward/not_finite", score.what == rl::reward_result::not_finite, 1, reduction::sum);
    add_spread(m, "response_length", response);
    m.add("response_length/clip_ratio", finish == rollout::finish::length, 1, reduction::mean);
    m.add("response/aborted_ratio", aborted, 1, reduction::mean);
    if (!aborted) add_spread(m, "response_length_non_aborted", response);
    add_spread(m, "prompt_length", prompt);
    add_spread(m, "global_seqlen", prompt + response);
    tokens += prompt + response;
  }
  m.add("perf/total_num_tokens", tokens, 1, reduction::sum);
}

// What generation counted (stages/generate.hpp): sums [11].
inline void add_rollout_metrics(io::metrics& m, double const* sums) {
  using io::reduction;
  char const* const names[] = {"rollout/steps",
                               "rollout/started",
                               "rollout/finished",
                               "rollout/aborted",
                               "rollout/from_journal",
                               "rollout/prefilled_tokens",
                               "rollout/shared_prompt_tokens",
                               "rollout/decoded_tokens",
                               "rollout/preemptions",
                               "rollout/replayed_tokens"};
  for (size_t i = 0; i < 10; ++i) m.add(names[i], sums[i], 1, reduction::sum);
  m.add("rollout/busy_slots", sums[10], sums[0], reduction::mean);
}

// Rollout correction: verl's names; token_mult_prob_error is NeMo-RL's.
inline void add_correction_metrics(io::metrics& m, rl::correction_row const& c) {
  auto const& w = c.weights;
  auto const mean = [&](char const* name, double sum, double over) { m.add(name, sum, over, io::reduction::mean); };
  if (w.tokens == 0) return;
  double const average = w.weight / w.tokens, variance = w.weight_squares / w.tokens - average * average;
  mean("rollout_corr/rollout_is_mean", w.weight, w.tokens);
  mean("rollout_corr/rollout_is_std", std::sqrt(variance > 0 ? variance : 0), 1);
  m.add("rollout_corr/rollout_is_max", w.max_weight, 1, io::reduction::max);
  m.add("rollout_corr/rollout_is_min", c.least_weight, 1, io::reduction::min);
  mean("rollout_corr/rollout_is_eff_sample_size", objective::effective_sample_size(w), 1);
  mean("rollout_corr/rollout_is_ratio_fraction_high", w.high, w.tokens);
  mean("rollout_corr/rollout_is_ratio_fraction_low", w.low, w.tokens);
  mean("rollout_corr/rollout_rs_masked_fraction", w.rejected_tokens, w.tokens);
  mean("rollout_corr/rollout_rs_seq_masked_fraction", c.rejected, c.sequences);
  mean("rollout_corr/kl", w.k1, w.tokens);
  mean("rollout_corr/k3_kl", w.k3, w.tokens);
  mean("rollout_corr/training_ppl", c.train_ppl, c.sequences);
  mean("rollout_corr/rollout_ppl", c.rollout_ppl, c.sequences);
  mean("rollout_corr/log_ppl_diff", c.log_ppl_diff, c.sequences);
  mean("rollout_corr/log_ppl_abs_diff", c.log_ppl_abs, c.sequences);
  mean("rollout_corr/ppl_ratio", c.ppl_ratio, c.sequences);
  mean("rollout_corr/chi2_token", c.square - w.tokens, w.tokens);
  mean("rollout_corr/chi2_seq", c.sequence_square - c.sequences, c.sequences);
  mean("rollout_corr/token_mult_prob_error", c.prob_error, w.tokens);
}

// An objective's sums over all mini-batches of the step; norms are of the updates that ran.
struct metric_names {
  objective::metric_name const* names;
  size_t count;
  bool pairs;  // means are over pairs, not tokens
};
template <class Objective> metric_names names_of(Objective const& o) {  // of a choice: of the chosen one
  metric_names found{};
  objective::visit(o, [&]<class Sum>(Sum const&) {
    static constexpr auto names = Sum::metric_names();
    found = {names.data(), names.size(), std::is_same_v<typename Sum::unit, objective::per_pair>};
  });
  return found;
}
inline void add_loss_metrics(io::metrics& m, metric_names const& names, double const* sums, size_t updates) {
  double const counted = names.pairs ? sums[rl::sum_sequences] / 2 : sums[rl::sum_tokens];
  for (size_t i = 1; i < names.count; ++i)
    m.add(names.names[i].name, sums[i], names.names[i].mean ? counted : double(updates), io::reduction::mean);
}
inline void add_update_metrics(io::metrics& m, std::string const& who, metric_names const& names, double const* sums, f32 const* norms,
                               size_t updates, double lr) {
  using io::reduction;
  add_loss_metrics(m, names, sums, updates);
  m.add(who + "/loss", sums[0], double(updates), reduction::mean);
  for (size_t i = 0; i < updates; ++i) m.add(who + "/grad_norm", double(norms[i]), 1, reduction::mean);
  m.add(who + "/lr", lr, 1, reduction::mean);
}
}  // namespace weft::train
