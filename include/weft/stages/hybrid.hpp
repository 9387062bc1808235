// stages/hybrid.hpp — several tasks in one step: rollouts, demonstrations and pairs, each with its own data, loss, weight and denominators, in one
// forward and backward pass. A prompt belongs to one task. Answers of demonstrations (sample 0) and of pairs (samples 0 chosen, 1 rejected) come with
// the data; other samples of such prompts are empty. Every mini-batch holds the same share of every task.
#pragma once
#include <weft/objective/preference.hpp>
#include <weft/objective/sft.hpp>
#include "preference.hpp"

namespace weft::rl {
struct task_count : fixed<3> {};
enum task_kind : i32 { rollouts, demonstrations, pairs };
struct task : port<i32, prompt<training>> {};                             // task_kind
struct learned : port<i32, prompt<training>, group<training>> {};         // 1: a sample that the policy learns from
template <class M> struct task_tallies : port<i32, task_count, pair> {};  // tokens and sequences of each, once per mini-batch
template <int> struct task_sums : sum_over<port<double, statistic>, prompt<training>> {};  // metrics of the demonstrations and of the pairs

struct hybrid_settings {
  double weight[3] = {0.4, 0.4, 0.2};  // of rollouts, demonstrations, pairs
  i32 minibatches = 1;
};
struct demonstrated : objective::sft {
  static constexpr char const* name = "hybrid/sft_loss";
};
struct preferred : objective::dpo {
  static constexpr char const* name = "hybrid/dpo_loss";
};
using demonstrations_objective = objective::sum<demonstrated>;
using pairs_objective = objective::sum<preferred>;

struct include_learned {  // rollouts with a score, and all that came with an answer
  static void run(in<task> kind, in<included> scored, in<lengths<training>> n, out<learned> use) {
    size_t const each = n.extent<group<training>>();
    for (size_t i = 0; i < n.count(); ++i) use.flat(i) = kind(i / each) == rollouts ? scored.flat(i) : n.flat(i) > 0;
  }
};
// Samples of a prompt side by side, mini-batch after mini-batch, in each of them the same share of every task.
template <class M> struct stratified_order {
  static void run(in<task> kind, setting<hybrid_settings> o, in<epoch_seed<M>>, out<order<M>> to) {
    size_t const prompts = kind.count(), each = to.count() / prompts, ways = size_t(o->minibatches);
    size_t at = 0;
    for (size_t k = 0; k < ways; ++k)
      for (i32 t = 0; t < i32(task_count::size); ++t) {
        size_t all = 0, seen = 0;
        for (size_t p = 0; p < prompts; ++p) all += kind(p) == t;
        share const mine{all, ways, k};
        for (size_t p = 0; p < prompts; ++p) {
          if (kind(p) != t) continue;
          if (seen >= mine.begin && seen < mine.end)
            for (size_t g = 0; g < each; ++g) to(at++) = i32(p * each + g);
          ++seen;
        }
      }
  }
};
template <class M> struct count_tasks {
  static void run(in<order<M>> o, in<task> kind, in<lengths<training>> n, in<learned> use, out<task_tallies<M>> count) {
    size_t const each = n.extent<group<training>>();
    for (size_t i = 0; i < count.count(); ++i) count.flat(i) = 0;
    for (size_t i = 0; i < o.count(); ++i) {
      size_t const s = size_t(o(i));
      if (!use.flat(s) || n.flat(s) == 0) continue;
      size_t const t = size_t(kind(s / each));
      count(t, 0) += n.flat(s), ++count(t, 1);
    }
  }
};

// What the three losses read of a row, and their weighted derivative there.
template <class Policy> struct hybrid_rows {
  row_context at;
  policy_token token_at;
  i32 const *task, *tallies;  // [prompts]; [3, 2]
  size_t group;
  hybrid_settings settings;
  Policy policy;
  demonstrations_objective demonstrations;
  pairs_objective pairs;
  f32 const *log_prob, *entropy;  // [rows], for the metrics
  f32 const* sums;                // [sequences, 2]: of the policy, of the reference

  WEFT_HD size_t sample(size_t sequence) const { return size_t(at.order[at.bin[0] + i32(sequence)]); }
  WEFT_HD i32 task_of(size_t r) const { return task[sample(size_t(at.b.owner[r])) / group]; }
  template <class Mask> WEFT_HD objective::counts<Mask> over(i32 t) const {
    i32 const* n = tallies + 2 * t;
    return {n[0], n[1], n[1], t == rl::pairs ? n[1] / 2 : 0};
  }
  WEFT_HD objective::token<f32> demonstrated_at(f32 lp, f32 h) const {
    objective::token<f32> t;
    t.log_prob = t.detached = lp, t.entropy = h;
    return t;
  }
  WEFT_HD objective::pair<f32> pair_at(size_t owner) const {
    size_t const first = owner - sample(owner) % group;
    f32 const* const x = sums + 2 * first;
    return {x[0], x[2], x[1], x[3], f32(at.lengths[sample(first)]), f32(at.lengths[sample(first + 1)])};
  }
  WEFT_HD kernels::token_gradient<f32> operator()(size_t r, f32 lp, f32 h) const {
    if (!at.counts(r)) return {0, 0};
    i32 const t = task_of(r);
    f32 const w = f32(settings.weight[t]);
    if (t == rollouts) {
      auto const d = policy.evaluate(token_at(r, lp, h), at.around(r), over<typename Policy::mask>(t));
      return {w * d.log_prob, w * d.entropy};
    }
    if (t == rl::demonstrations)
      return {w * demonstrations.evaluate(demonstrated_at(lp, h), at.around(r), over<objective::completion>(t)).log_prob, 0};
    size_t const owner = size_t(at.b.owner[r]);
    auto const d = pairs.evaluate(pair_at(owner), objective::sequence<f32>{}, over<objective::completion>(t));
    return {w * (sample(owner) % group ? d.rejected : d.chosen), 0};
  }
  WEFT_HD bool first_of_sequence(size_t r) const { return r == 0 || at.b.owner[r - 1] != at.b.owner[r]; }
};
template <class Policy, int Task> struct hybrid_measure {
  hybrid_rows<Policy> of;
  WEFT_HD void operator()(size_t r, double* sums) const {
    if (!of.at.counts(r) || of.task_of(r) != Task) return;
    size_t const owner = size_t(of.at.b.owner[r]);
    if constexpr (Task == rollouts)
      of.policy.measure(of.token_at(r, of.log_prob[r], of.entropy[r]), of.at.around(r), of.template over<typename Policy::mask>(Task),
                        sums);
    else if constexpr (Task == rl::demonstrations)
      of.demonstrations.measure(of.demonstrated_at(of.log_prob[r], of.entropy[r]), of.at.around(r),
                                of.template over<objective::completion>(Task), sums);
    else if (of.first_of_sequence(r) && of.sample(owner) % of.group == 0)
      of.pairs.measure(of.pair_at(owner), objective::sequence<f32>{}, of.template over<objective::completion>(Task), sums);
  }
};
template <class Policy, int Task> struct hybrid_counted {  // rows and sequences of a task
  hybrid_rows<Policy> of;
  WEFT_HD void operator()(size_t r, double* to) const {
    if (!of.at.counts(r) || of.task_of(r) != Task) return;
    to[0] += 1;
    to[1] += of.first_of_sequence(r);
  }
};
// token_budget::together is the size of a group, so that pairs are not cut.
template <class M, class Policy> struct hybrid_update {
  static_assert(Policy::metric_count <= sum_tokens && Policy::statistics == 0);
  template <class E>
  static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<task_tallies<M>> of_tasks, in<task> kind,
                  in<prompts<training>> p, in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n,
                  in<sampling_of<training>> how, in<log_probs<training>> old, in<advantages> a, in<ref_log_probs> ref, setting<config<M>> c,
                  setting<Policy> policy, setting<demonstrations_objective> demonstrations, setting<pairs_objective> pairs,
                  setting<hybrid_settings> o, setting<token_budget<M>> budget, state<rope_table<M>> rope, state<weights<M>> w,
                  scratch<packed<M>> index, scratch<activations<M, M>> room, scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows,
                  scratch<row_numbers<M>> numbers, scratch<logits<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums,
                  inout<task_sums<1>> sft_sums, inout<task_sums<2>> dpo_sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assembled(on, from, bin, order, index);
    size_t const width = size_t(c->hidden), vocab = size_t(c->vocab), some = size_t(b.rows), chunk = z.template extent<head_row>();
    f32 *const lp = u.number(1), *const entropy = u.number(2), *const of_sequence = u.number(3);  // two numbers each: fields 3 and 4
    T const* const head = model::head_weight(*c, u.weights);
    hybrid_rows<Policy> const of{{b, n.data, order.data, &bin.data->begin, count.data, nullptr, 0},
                                 {b, old.data, a.data, ref.data, nullptr, nullptr},
                                 kind.data,
                                 of_tasks.data,
                                 from.group,
                                 *o,
                                 *policy,
                                 *demonstrations,
                                 *pairs,
                                 lp,
                                 entropy,
                                 of_sequence};
    kernels::for_rows(on, some, inverse_temperatures{b, how.data, from.room * from.group, u.number(0)});
    u.forward(on, b);
    kernels::head_log_probs(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), lp, entropy);
    kernels::sum_by_owner<2>(on, some, b.owner, size_t(b.sequences), summed_log_probs{b, lp, ref.data}, of_sequence);
    kernels::head_loss(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), of, lp, entropy, u.gradient(),
                       model::head_weight(*c, g.data));
    kernels::sum_rows<Policy::metric_count>(on, some, hybrid_measure<Policy, rollouts>{of}, sums.data);
    kernels::sum_rows<demonstrations_objective::metric_count>(on, some, hybrid_measure<Policy, rl::demonstrations>{of}, sft_sums.data);
    kernels::sum_rows<pairs_objective::metric_count>(on, some, hybrid_measure<Policy, rl::pairs>{of}, dpo_sums.data);
    kernels::sum_rows<2>(on, some, hybrid_counted<Policy, rollouts>{of}, sums.data + sum_tokens);
    kernels::sum_rows<2>(on, some, hybrid_counted<Policy, rl::demonstrations>{of}, sft_sums.data + sum_tokens);
    kernels::sum_rows<2>(on, some, hybrid_counted<Policy, rl::pairs>{of}, dpo_sums.data + sum_tokens);
    u.backward(on, b);
  }
};
}  // namespace weft::rl
