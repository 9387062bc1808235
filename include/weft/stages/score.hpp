// stages/score.hpp — passes without a gradient over the samples of a step: log-probs of another model, and the critic's values.
// They run in a loop of micro-batches; what a turn does not touch stays as zero<> left it.
#pragma once
#include <weft/kernels/head.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>
#include "batch.hpp"

namespace weft::rl {
// log-prob of every response token under model M: same temperature as it was drawn at, over the whole vocabulary
template <class M> struct reference_log_probs {
  template <class E>
  static void run(E& on, in<bins<scoring>> bin, in<bin_order<scoring>> order, in<prompts<training>> p, in<prompt_lengths<training>> np,
                  in<tokens<training>> t, in<lengths<training>> n, in<sampling_of<training>> how, setting<config<M>> c,
                  setting<token_budget<scoring>> budget, state<rope_table<M>> rope, state<weights<M>> w, scratch<packed<scoring>> index,
                  scratch<activations<M, scoring>> room, scratch<hidden<M, scoring>> h, scratch<head_hidden<M, scoring>> rows,
                  scratch<row_numbers<scoring>> numbers, scratch<logits<M>> z, inout<ref_log_probs> to) {
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assemble<scoring>(from, order.data + bin.flat(0).begin, size_t(bin.flat(0).end - bin.flat(0).begin), index);
    size_t const width = size_t(c->hidden), each = numbers.template extent<packed_token<scoring>>();
    f32 *const inverse = numbers.data, *const lp = inverse + each, *const entropy = lp + each;
    for (i32 r = 0; r < b.rows; ++r)
      inverse[r] = kernels::inverse_temperature_of<f32>(how.flat(size_t(b.cell[r]) / (from.room * from.group)));
    model::forward<f32>(on, *c, budget->recompute != 0, rope.data, w.data, b.view(), room.data, h.data);
    kernels::gather_rows(on, size_t(b.rows), width, b.row, h.data, rows.data);
    kernels::head_log_probs(on, size_t(b.rows), width, size_t(c->vocab), rows.data, model::head_weight(*c, w.data), b.target, inverse,
                            head_row::size, z.data, lp, entropy);
    for (i32 r = 0; r < b.rows; ++r) to.flat(size_t(b.cell[r])) = lp[r];
  }
};
// what the critic expects from the state before each response token
template <class M> struct state_values {
  template <class E> static void run(E& on, in<bins<scoring>> bin, in<bin_order<scoring>> order, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<token_budget<scoring>> budget, state<rope_table<M>> rope, state<weights<M>> w,
                                     scratch<packed<scoring>> index, scratch<activations<M, scoring>> room, scratch<hidden<M, scoring>> h,
                                     scratch<head_hidden<M, scoring>> rows, scratch<row_numbers<scoring>> numbers, inout<values> to) {
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assemble<scoring>(from, order.data + bin.flat(0).begin, size_t(bin.flat(0).end - bin.flat(0).begin), index);
    model::forward<f32>(on, *c, budget->recompute != 0, rope.data, w.data, b.view(), room.data, h.data);
    kernels::gather_rows(on, size_t(b.rows), size_t(c->hidden), b.row, h.data, rows.data);
    model::score_head(on, *c, size_t(b.rows), rows.data, w.data, numbers.data);
    for (i32 r = 0; r < b.rows; ++r) to.flat(size_t(b.cell[r])) = numbers.data[r];
  }
};
}  // namespace weft::rl
