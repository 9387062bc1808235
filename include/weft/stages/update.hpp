// stages/update.hpp — one micro-batch: forward, loss, backward; gradients and metric sums grow. The loss is any objective::sum<...>.
// Denominators are the integers that pack counted for the whole mini-batch, so any cut into micro-batches gives the same gradient.
// What a loss reads of a row is a plain struct, so that it runs inside a kernel of a GPU too.
#pragma once
#include <weft/kernels/head.hpp>
#include <weft/model/backward.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>
#include <weft/objective/choice.hpp>
#include "batch.hpp"

namespace weft::rl {
// Where metric sums lie in loss_sums: the objective's own from 0, then what all of them need.
inline constexpr size_t sum_tokens = 13, sum_sequences = 14;

struct batch_sizes {  // rows and sequences that there are
  kernels::batch b;
  WEFT_HD void operator()(size_t r, double* to) const {
    if (b.target[r] < 0) return;
    to[0] += 1;
    to[1] += r == 0 || b.owner[r] != b.owner[r - 1];
  }
};
// The ports of an update that are the same for every loss: a micro-batch, a model, and room to compute in.
template <class M, class T> struct update_room {
  in<bins<M>> bin;
  in<bin_order<M>> order;
  in<tallies<M>> counted;
  config<M> const& c;
  token_budget<M> const& budget;
  f32 const* rope;
  T const* weights;
  scratch<packed<M>> index;
  scratch<activations<M, M>> room;
  scratch<hidden<M, M>> h;
  scratch<head_hidden<M, M>> rows;
  scratch<row_numbers<M>> numbers;
  inout<gradients<M>> g;
  inout<loss_sums<M>> sums;

  f32* number(size_t field) const { return numbers.data + field * numbers.template extent<packed_token<M>>(); }  // [rows]
  T* read() const { return as<T>(rows); }                                                                        // [rows, hidden]
  T* gradient() const { return as<T>(rows) + rows.count() / 2; }                                                 // [rows, hidden]

  template <class E> void forward(E& on, kernels::batch const& b) const {
    model::forward<T>(on, c, budget.recompute != 0, rope, weights, view_of(b), as<T>(room), as<T>(h));
    kernels::gather_rows(on, size_t(b.rows), size_t(c.hidden), b.row, as<T>(h), read());
  }
  template <class E> void backward(E& on, kernels::batch const& b) const {  // from gradient()
    kernels::scatter_rows(on, size_t(b.rows), size_t(c.hidden), b.row, gradient(), size_t(b.tokens), as<T>(h));
    model::backward<T>(on, c, budget.recompute != 0, rope, weights, view_of(b), as<T>(room), as<T>(h), g.data);
  }
  template <class E> void count(E& on, kernels::batch const& b) const {
    kernels::sum_rows<2>(on, size_t(b.rows), batch_sizes{b}, sums.data + sum_tokens);
  }
};

// What surrounds the rows of a micro-batch: their sequences, and the counts of the whole mini-batch.
struct row_context {
  kernels::batch b;
  i32 const *lengths, *order, *bin;  // [samples]; samples of the lane; [2]
  i32 const* count;                  // [2]: tokens, sequences
  f32 const* statistics;             // [sequences, per_sequence], or nothing
  size_t per_sequence;

  WEFT_HD bool counts(size_t r) const { return b.target[r] >= 0; }
  WEFT_HD objective::sequence<f32> around(size_t r) const {
    i32 const owner = b.owner[r];
    return {f32(lengths[order[bin[0] + owner]]), statistics + per_sequence * size_t(owner)};
  }
  template <class Mask> WEFT_HD objective::counts<Mask> over() const { return {count[0], count[1], count[1], 0}; }
};
// A loss of the rows' log-probs: TokenAt(row, log_prob, entropy) is what it reads.
template <class Objective, class TokenAt> struct rows_loss {
  row_context at;
  Objective loss;
  TokenAt token_at;
  using mask = typename Objective::mask;

  WEFT_HD kernels::token_gradient<f32> operator()(size_t r, f32 log_prob, f32 entropy) const {
    if (!at.counts(r)) return {0, 0};
    auto const d = loss.evaluate(token_at(r, log_prob, entropy), at.around(r), at.template over<mask>());
    return {d.log_prob, d.entropy};
  }
};
template <class Objective, class TokenAt> struct rows_measure {
  rows_loss<Objective, TokenAt> of;
  f32 const *log_prob, *entropy;  // [rows]
  WEFT_HD void operator()(size_t r, double* sums) const {
    if (of.at.counts(r))
      of.loss.measure(of.token_at(r, log_prob[r], entropy[r]), of.at.around(r), of.at.template over<typename Objective::mask>(), sums);
  }
};
template <class Objective, class TokenAt> struct rows_reduce {  // to the statistics of a sequence
  rows_loss<Objective, TokenAt> of;
  f32 const *log_prob, *entropy;
  WEFT_HD void operator()(size_t r, f32* sums) const {
    if (of.at.counts(r)) of.loss.reduce(of.token_at(r, log_prob[r], entropy[r]), sums);
  }
};

// Inverse temperatures stand in number(0).
template <class M, class T, class Objective, class E, class TokenAt>
void update_by_log_probs(E& on, update_room<M, T> const& u, kernels::sequences const& from, kernels::batch const& b, Objective const& loss,
                         scratch<logits<M>> const& z, TokenAt const& token_at) {
  static_assert(Objective::metric_count <= sum_tokens && Objective::statistics <= 3);
  size_t const width = size_t(u.c.hidden), vocab = size_t(u.c.vocab), some = size_t(b.rows), chunk = z.template extent<head_row>();
  f32 *const lp = u.number(1), *const entropy = u.number(2), *const statistics = u.number(3);
  T const* const head = model::head_weight(u.c, u.weights);
  rows_loss<Objective, TokenAt> const of{
      {b, from.lengths, u.order.data, &u.bin.data->begin, u.counted.data, statistics, Objective::statistics}, loss, token_at};
  u.forward(on, b);
  if constexpr (Objective::statistics > 0) {  // sums over each sequence, before the gradient
    kernels::head_log_probs(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), lp, entropy);
    kernels::sum_by_owner<Objective::statistics>(on, some, b.owner, size_t(b.sequences), rows_reduce<Objective, TokenAt>{of, lp, entropy},
                                                 statistics);
  }
  kernels::head_loss(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), of, lp, entropy, u.gradient(),
                     model::head_weight(u.c, u.g.data));
  kernels::sum_rows<Objective::metric_count>(on, some, rows_measure<Objective, TokenAt>{of, lp, entropy}, u.sums.data);
  u.backward(on, b), u.count(on, b);
}

struct policy_token {
  kernels::batch b;
  f32 const *old, *advantage;  // [sample, position]
  f32 const *ref, *weight;     // the same, or null
  i32 const* selected;         // the same, or null
  WEFT_HD objective::token<f32> operator()(size_t r, f32 log_prob, f32 entropy) const {
    size_t const cell = size_t(b.cell[r]);
    objective::token<f32> token;
    token.log_prob = token.detached = log_prob;
    token.entropy = entropy;
    token.old_log_prob = old[cell];
    token.advantage = advantage[cell];
    token.ref_log_prob = ref ? ref[cell] : log_prob;  // no reference: a KL of 0
    token.rollout_weight = weight ? weight[cell] : 1;
    token.selected = selected ? selected[cell] : 0;
    return token;
  }
};
// OldLogProbs: of the policy that the ratio is taken to, by default the one that sampled
template <class M, class Objective, class OldLogProbs = log_probs<training>> struct policy_update
    : demand<std::is_same_v<typename Objective::reads, typename OldLogProbs::kind>,
             error::OBJECTIVE_READS_OTHER_LOG_PROBS<Objective, error::is<typename OldLogProbs::kind>,
                                                    error::wanted<typename Objective::reads>>> {
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n,
                                     in<sampling_of<training>> how, in<OldLogProbs> old, in<advantages> a, optional<in<ref_log_probs>> ref,
                                     optional<in<rollout_weights>> weight, optional<in<selected>> chosen, setting<config<M>> c,
                                     setting<Objective> loss, setting<token_budget<M>> budget, state<rope_table<M>> rope,
                                     state<weights<M>> w, scratch<packed<M>> index, scratch<activations<M, M>> room,
                                     scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows, scratch<row_numbers<M>> numbers,
                                     scratch<logits<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assembled(on, from, bin, order, index);
    kernels::for_rows(on, size_t(b.rows), inverse_temperatures{b, how.data, from.room * from.group, u.number(0)});
    policy_token const token_at{
        b, old.data, a.data, ref ? ref.data : nullptr, weight ? weight.data : nullptr, chosen ? chosen.data : nullptr};
    objective::visit(*loss, [&](auto const& one) { update_by_log_probs(on, u, from, b, one, z, token_at); });
  }
};

struct demonstrated_token {
  WEFT_HD objective::token<f32> operator()(size_t, f32 log_prob, f32 entropy) const {
    objective::token<f32> token;
    token.log_prob = token.detached = log_prob;
    token.entropy = entropy;
    return token;
  }
};
struct temperature_one {
  f32* to;  // [rows]
  WEFT_HD void operator()(size_t r) const { to[r] = 1; }
};
template <class M, class Objective> struct sft_update {  // at temperature 1, whatever sampling says
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<Objective> loss, setting<token_budget<M>> budget, state<rope_table<M>> rope,
                                     state<weights<M>> w, scratch<packed<M>> index, scratch<activations<M, M>> room,
                                     scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows, scratch<row_numbers<M>> numbers,
                                     scratch<logits<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assembled(on, from, bin, order, index);
    kernels::for_rows(on, size_t(b.rows), temperature_one{u.number(0)});
    update_by_log_probs(on, u, from, b, *loss, z, demonstrated_token{});
  }
};

// A loss of the critic's values.
template <class Objective> struct value_rows {
  row_context at;
  Objective loss;
  f32 const *value, *old, *target;  // [rows]; [sample, position] twice
  f32* gradient;                    // [rows]

  WEFT_HD objective::prediction<f32> prediction(size_t r) const {
    size_t const cell = size_t(at.b.cell[r]);
    return {value[r], old[cell], target[cell]};
  }
  WEFT_HD void operator()(size_t r) const {
    gradient[r] = at.counts(r) ? loss.evaluate(prediction(r), at.around(r), at.template over<typename Objective::mask>()).prediction : 0;
  }
  WEFT_HD void operator()(size_t r, double* sums) const {
    if (at.counts(r)) loss.measure(prediction(r), at.around(r), at.template over<typename Objective::mask>(), sums);
  }
};
template <class M, class Objective> struct value_update {
  static_assert(Objective::metric_count <= sum_tokens && Objective::statistics == 0);
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, in<values> old,
                                     in<returns> target, setting<config<M>> c, setting<Objective> loss, setting<token_budget<M>> budget,
                                     state<rope_table<M>> rope, state<weights<M>> w, scratch<packed<M>> index,
                                     scratch<activations<M, M>> room, scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows,
                                     scratch<row_numbers<M>> numbers, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assembled(on, from, bin, order, index);
    f32 *const v = u.number(0), *const dv = u.number(1);
    u.forward(on, b);
    model::score_head(on, *c, size_t(b.rows), u.read(), as<T>(w), v);
    value_rows<Objective> const of{{b, n.data, order.data, &bin.data->begin, count.data, nullptr, 0}, *loss, v, old.data, target.data, dv};
    kernels::for_rows(on, size_t(b.rows), of);
    kernels::sum_rows<Objective::metric_count>(on, size_t(b.rows), of, sums.data);
    model::score_head_backward(on, *c, size_t(b.rows), u.read(), as<T>(w), dv, u.gradient(), g.data);
    u.backward(on, b), u.count(on, b);
  }
};
}  // namespace weft::rl
