// stages/update.hpp — one micro-batch: forward, loss, backward; gradients and metric sums grow. The loss is any objective::sum<...>.
// Denominators are the integers that pack counted for the whole mini-batch, so any cut into micro-batches gives the same gradient.
#pragma once
#include <weft/kernels/head.hpp>
#include <weft/model/backward.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>
#include <weft/objective/sum.hpp>
#include "batch.hpp"

namespace weft::rl {
// Where metric sums lie in loss_sums: the objective's own from 0, then what all of them need.
inline constexpr size_t sum_tokens = 13, sum_sequences = 14;

// The ports of an update that are the same for every loss: a micro-batch, a model, and room to compute in.
template <class M> struct update_room {
  in<bins<M>> bin;
  in<bin_order<M>> order;
  in<tallies<M>> count;
  config<M> const& c;
  token_budget<M> const& budget;
  f32 const *rope, *weights;
  scratch<packed<M>> index;
  scratch<activations<M, M>> room;
  scratch<hidden<M, M>> h;
  scratch<head_hidden<M, M>> rows;
  scratch<row_numbers<M>> numbers;
  inout<gradients<M>> g;
  inout<loss_sums<M>> sums;

  i32 const* samples() const { return order.data + bin.flat(0).begin; }
  batch assembled(sequences const& from) const { return assemble<M>(from, samples(), size_t(bin.flat(0).end - bin.flat(0).begin), index); }
  template <class Mask> objective::counts<Mask> counts() const { return {count(0), count(1), count(1), 0}; }
  f32* number(size_t field) const { return numbers.data + field * numbers.template extent<packed_token<M>>(); }  // [rows]
  f32* read() const { return rows.data; }                                                                        // [rows, hidden]
  f32* gradient() const { return rows.data + rows.count() / 2; }                                                 // [rows, hidden]

  template <class E> void forward(E& on, batch const& b) const {
    model::forward<f32>(on, c, budget.recompute != 0, rope, weights, b.view(), room.data, h.data);
    kernels::gather_rows(on, size_t(b.rows), size_t(c.hidden), b.row, h.data, read());
  }
  template <class E> void backward(E& on, batch const& b) const {  // from gradient()
    kernels::scatter_rows(on, size_t(b.rows), size_t(c.hidden), b.row, gradient(), size_t(b.tokens), h.data);
    model::backward<f32>(on, c, budget.recompute != 0, rope, weights, b.view(), room.data, h.data, g.data);
    sums(sum_tokens) += double(b.rows);
    sums(sum_sequences) += double(b.sequences);
  }
};

// A loss of log-probs; token_at(row, log_prob, entropy) is what it reads, inverse temperatures stand in number(0).
template <class M, class Objective, class E, class TokenAt> void update_by_log_probs(E& on, update_room<M> const& u, sequences const& from,
                                                                                     batch const& b, Objective const& loss, f32* logits,
                                                                                     TokenAt const& token_at) {
  static_assert(Objective::metric_count <= sum_tokens && Objective::statistics <= 3);
  size_t const width = size_t(u.c.hidden), vocab = size_t(u.c.vocab), some = size_t(b.rows);
  f32 *const lp = u.number(1), *const entropy = u.number(2), *const statistics = u.number(3);
  f32 const* const head = model::head_weight(u.c, u.weights);
  auto const over = u.template counts<typename Objective::mask>();
  auto const around = [&](size_t r) {
    return objective::sequence<f32>{f32(from.lengths[u.samples()[b.owner[r]]]), statistics + Objective::statistics * size_t(b.owner[r])};
  };
  u.forward(on, b);
  if constexpr (Objective::statistics > 0) {  // sums over each sequence, before the gradient
    for (size_t i = 0; i < Objective::statistics * size_t(b.sequences); ++i) statistics[i] = 0;
    kernels::head_log_probs(on, some, width, vocab, u.read(), head, b.target, u.number(0), head_row::size, logits, lp, entropy);
    for (size_t r = 0; r < some; ++r) loss.reduce(token_at(r, lp[r], entropy[r]), statistics + Objective::statistics * size_t(b.owner[r]));
  }
  auto const of_row = [&](size_t r, f32 log_prob, f32 h) {
    auto const token = token_at(r, log_prob, h);
    loss.measure(token, around(r), over, u.sums.data);
    auto const d = loss.evaluate(token, around(r), over);
    return kernels::token_gradient<f32>{d.log_prob, d.entropy};
  };
  kernels::head_loss(on, some, width, vocab, u.read(), head, b.target, u.number(0), head_row::size, logits, of_row, lp, entropy,
                     u.gradient(), model::head_weight(u.c, u.g.data));
  u.backward(on, b);
}

template <class M, class Objective> struct policy_update
    : demand<std::is_same_v<typename Objective::reads, typename log_probs<training>::kind>,
             error::OBJECTIVE_READS_OTHER_LOG_PROBS<Objective, error::is<typename log_probs<training>::kind>,
                                                    error::wanted<typename Objective::reads>>> {
  template <class E>
  static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                  in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, in<sampling_of<training>> how,
                  in<log_probs<training>> old, in<advantages> a, optional<in<ref_log_probs>> ref, setting<config<M>> c,
                  setting<Objective> loss, setting<token_budget<M>> budget, state<rope_table<M>> rope, state<weights<M>> w,
                  scratch<packed<M>> index, scratch<activations<M, M>> room, scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows,
                  scratch<row_numbers<M>> numbers, scratch<logits<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    update_room<M> const u{bin, order, count, *c, *budget, rope.data, w.data, index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = u.assembled(from);
    for (size_t r = 0; r < size_t(b.rows); ++r)
      u.number(0)[r] = kernels::inverse_temperature_of<f32>(how.flat(size_t(b.cell[r]) / (from.room * from.group)));
    update_by_log_probs(on, u, from, b, *loss, z.data, [&](size_t r, f32 log_prob, f32 entropy) {
      size_t const cell = size_t(b.cell[r]);
      objective::token<f32> token;
      token.log_prob = token.detached = log_prob;
      token.entropy = entropy;
      token.old_log_prob = old.flat(cell);
      token.advantage = a.flat(cell);
      token.ref_log_prob = ref ? ref.flat(cell) : log_prob;  // no reference: a KL of 0
      return token;
    });
  }
};

template <class M, class Objective> struct sft_update {  // at temperature 1, whatever sampling says
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<Objective> loss, setting<token_budget<M>> budget, state<rope_table<M>> rope,
                                     state<weights<M>> w, scratch<packed<M>> index, scratch<activations<M, M>> room,
                                     scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows, scratch<row_numbers<M>> numbers,
                                     scratch<logits<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    update_room<M> const u{bin, order, count, *c, *budget, rope.data, w.data, index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = u.assembled(from);
    for (size_t r = 0; r < size_t(b.rows); ++r) u.number(0)[r] = 1;
    update_by_log_probs(on, u, from, b, *loss, z.data, [&](size_t, f32 log_prob, f32 entropy) {
      objective::token<f32> token;
      token.log_prob = token.detached = log_prob;
      token.entropy = entropy;
      return token;
    });
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
    update_room<M> const u{bin, order, count, *c, *budget, rope.data, w.data, index, room, h, rows, numbers, g, sums};
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = u.assembled(from);
    auto const over = u.template counts<typename Objective::mask>();
    f32 *const v = u.number(0), *const dv = u.number(1);
    u.forward(on, b);
    model::score_head(on, *c, size_t(b.rows), u.read(), w.data, v);
    for (size_t r = 0; r < size_t(b.rows); ++r) {
      size_t const cell = size_t(b.cell[r]);
      objective::prediction<f32> const at{v[r], old.flat(cell), target.flat(cell)};
      objective::sequence<f32> const around{f32(from.lengths[u.samples()[b.owner[r]]]), nullptr};
      loss->measure(at, around, over, sums.data);
      dv[r] = loss->evaluate(at, around, over).prediction;
    }
    model::score_head_backward(on, *c, size_t(b.rows), u.read(), w.data, dv, u.gradient(), g.data);
    u.backward(on, b);
  }
};
}  // namespace weft::rl
