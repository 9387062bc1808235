// stages/preference.hpp — one micro-batch of pairs: each prompt has two samples, the chosen one first. A pair stands in one micro-batch, because
// the derivative of its loss needs both answers: token_budget::together is 2, and the order of samples keeps pairs side by side.
#pragma once
#include "update.hpp"

namespace weft::rl {
// What the loss reads of a micro-batch's pairs. Of a sequence there are two numbers: its own, and the reference's.
template <class Objective> struct pair_rows {
  kernels::batch b;
  i32 const *lengths, *order, *bin, *count;  // as in row_context
  f32 const* numbers;                        // [sequences, 2]
  Objective loss;

  WEFT_HD bool counts(size_t r) const { return b.target[r] >= 0; }
  WEFT_HD f32 length(size_t sequence) const { return f32(lengths[order[bin[0] + i32(sequence)]]); }
  WEFT_HD objective::pair<f32> pair_of(size_t k) const {
    f32 const* const x = numbers + 4 * k;
    return {x[0], x[2], x[1], x[3], length(2 * k), length(2 * k + 1)};
  }
  WEFT_HD objective::counts<typename Objective::mask> over() const { return {count[0], count[1], count[1], count[1] / 2}; }
  WEFT_HD f32 derivative(size_t r) const {  // in the number of the row's sequence
    auto const d = loss.evaluate(pair_of(size_t(b.owner[r]) / 2), objective::sequence<f32>{}, over());
    return b.owner[r] % 2 ? d.rejected : d.chosen;
  }
  WEFT_HD bool begins_pair(size_t r) const { return counts(r) && b.owner[r] % 2 == 0 && (r == 0 || b.owner[r - 1] != b.owner[r]); }

  WEFT_HD kernels::token_gradient<f32> operator()(size_t r, f32, f32) const { return {counts(r) ? derivative(r) : 0, 0}; }
  WEFT_HD void operator()(size_t r, double* sums) const {  // metrics
    if (begins_pair(r)) loss.measure(pair_of(size_t(b.owner[r]) / 2), objective::sequence<f32>{}, over(), sums);
  }
};

struct summed_log_probs {  // of the policy and of the reference
  kernels::batch b;
  f32 const* log_prob;  // [rows]
  f32 const* ref;       // [sample, position], or null: 0
  WEFT_HD void operator()(size_t r, f32* sums) const {
    if (b.target[r] < 0) return;
    sums[0] += log_prob[r];
    sums[1] += ref ? ref[b.cell[r]] : 0;
  }
};
// A loss of summed log-probs at temperature 1: DPO and its kin.
template <class M, class Objective> struct preference_update {
  static_assert(Objective::metric_count <= sum_tokens);
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n,
                                     optional<in<ref_log_probs>> ref, setting<config<M>> c, setting<Objective> loss,
                                     setting<token_budget<M>> budget, state<rope_table<M>> rope, state<weights<M>> w,
                                     scratch<packed<M>> index, scratch<activations<M, M>> room, scratch<hidden<M, M>> h,
                                     scratch<head_hidden<M, M>> rows, scratch<row_numbers<M>> numbers, scratch<logits<M>> z,
                                     inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const b = assembled(on, sequences_of<training>(p, np, t, n), bin, order, index);
    size_t const width = size_t(c->hidden), vocab = size_t(c->vocab), some = size_t(b.rows), chunk = z.template extent<head_row>();
    f32 *const lp = u.number(1), *const entropy = u.number(2), *const of_sequence = u.number(3);  // two numbers each: fields 3 and 4
    T const* const head = model::head_weight(*c, u.weights);
    pair_rows<Objective> const of{b, n.data, order.data, &bin.data->begin, count.data, of_sequence, *loss};
    kernels::for_rows(on, some, temperature_one{u.number(0)});
    u.forward(on, b);
    kernels::head_log_probs(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), lp, entropy);
    kernels::sum_by_owner<2>(on, some, b.owner, size_t(b.sequences), summed_log_probs{b, lp, ref ? ref.data : nullptr}, of_sequence);
    kernels::head_loss(on, some, width, vocab, u.read(), head, b.target, u.number(0), chunk, as<T>(z), of, lp, entropy, u.gradient(),
                       model::head_weight(*c, g.data));
    kernels::sum_rows<Objective::metric_count>(on, some, of, sums.data);
    u.backward(on, b), u.count(on, b);
  }
};

// The score of a sequence is that of its last row. A row predicts the next token, and the last token predicts nothing: so answers are fed with one
// token more, which is never read, and the last row is the state after the true last token.
struct last_scores {
  kernels::batch b;
  f32 const* score;  // [rows]
  size_t rows;
  WEFT_HD bool last(size_t r) const { return b.target[r] >= 0 && (r + 1 == rows || b.target[r + 1] < 0 || b.owner[r + 1] != b.owner[r]); }
  WEFT_HD void operator()(size_t r, f32* sums) const {
    if (last(r)) sums[0] += score[r];
  }
};
template <class Objective> struct score_gradient {
  last_scores at;
  pair_rows<Objective> of;
  f32* to;  // [rows]
  WEFT_HD void operator()(size_t r) const { to[r] = at.last(r) ? of.derivative(r) : 0; }
};
// A loss of the scores of a model with one label: Bradley-Terry.
template <class M, class Objective> struct score_update {
  static_assert(Objective::metric_count <= sum_tokens);
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<Objective> loss, setting<token_budget<M>> budget, state<rope_table<M>> rope,
                                     state<weights<M>> w, scratch<packed<M>> index, scratch<activations<M, M>> room,
                                     scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows, scratch<row_numbers<M>> numbers,
                                     inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const b = assembled(on, sequences_of<training>(p, np, t, n), bin, order, index);
    size_t const some = size_t(b.rows);
    f32 *const score = u.number(0), *const d = u.number(1), *const of_sequence = u.number(3);
    last_scores const at{b, score, some};
    pair_rows<Objective> const of{b, n.data, order.data, &bin.data->begin, count.data, of_sequence, *loss};
    u.forward(on, b);
    model::score_head(on, *c, some, u.read(), u.weights, score);
    kernels::sum_by_owner<2>(on, some, b.owner, size_t(b.sequences), at, of_sequence);
    kernels::for_rows(on, some, score_gradient<Objective>{at, of, d});
    kernels::sum_rows<Objective::metric_count>(on, some, of, sums.data);
    model::score_head_backward(on, *c, some, u.read(), u.weights, d, u.gradient(), g.data);
    u.backward(on, b), u.count(on, b);
  }
};
}  // namespace weft::rl
