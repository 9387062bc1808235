// stages/score.hpp — passes without a gradient over the samples of a step: log-probs of another model, and the critic's values.
// They run in a loop of micro-batches; what a turn does not touch stays as zero<> left it.
#pragma once
#include <weft/kernels/head.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>
#include "batch.hpp"

namespace weft::rl {
// log-prob of every response token under model M: same temperature as it was drawn at (1 where nothing was drawn), over the whole vocabulary. Use: how samples are packed
template <class M, class To, class Use = scoring> struct log_probs_under {
  template <class E> static void run(E& on, in<bins<Use>> bin, in<bin_order<Use>> order, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n,
                                     optional<in<sampling_of<training>>> how, setting<config<M>> c, setting<token_budget<Use>> budget,
                                     state<rope_table<M>> rope, state<weights<M>> w, scratch<packed<Use>> index,
                                     scratch<activations<M, Use>> room, scratch<hidden<M, Use>> h, scratch<head_hidden<M, Use>> rows,
                                     scratch<row_numbers<Use>> numbers, scratch<logits<M>> z, inout<To> to) {
    using T = typename E::compute;
    auto const from = sequences_of<training>(p, np, t, n);
    auto const b = assembled(on, from, bin, order, index);
    size_t const width = size_t(c->hidden), each = numbers.template extent<packed_token<Use>>();
    f32 *const inverse = numbers.data, *const lp = inverse + each, *const entropy = lp + each;
    kernels::for_rows(on, size_t(b.rows), inverse_temperatures{b, how ? how.data : nullptr, from.room * from.group, inverse});
    model::forward<T>(on, *c, budget->recompute != 0, rope.data, as<T>(w), view_of(b), as<T>(room), as<T>(h));
    kernels::gather_rows(on, size_t(b.rows), width, b.row, as<T>(h), as<T>(rows));
    kernels::head_log_probs(on, size_t(b.rows), width, size_t(c->vocab), as<T>(rows), model::head_weight(*c, as<T>(w)), b.target, inverse,
                            z.template extent<head_row>(), as<T>(z), lp, entropy);
    kernels::for_rows(on, size_t(b.rows), to_cells{b, lp, to.data});
  }
};
template <class M> using reference_log_probs = log_probs_under<M, ref_log_probs>;
// what the critic expects from the state before each response token
template <class M> struct state_values {
  template <class E> static void run(E& on, in<bins<scoring>> bin, in<bin_order<scoring>> order, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<token_budget<scoring>> budget, state<rope_table<M>> rope, state<weights<M>> w,
                                     scratch<packed<scoring>> index, scratch<activations<M, scoring>> room, scratch<hidden<M, scoring>> h,
                                     scratch<head_hidden<M, scoring>> rows, scratch<row_numbers<scoring>> numbers, inout<values> to) {
    using T = typename E::compute;
    auto const b = assembled(on, sequences_of<training>(p, np, t, n), bin, order, index);
    model::forward<T>(on, *c, budget->recompute != 0, rope.data, as<T>(w), view_of(b), as<T>(room), as<T>(h));
    kernels::gather_rows(on, size_t(b.rows), size_t(c->hidden), b.row, as<T>(h), as<T>(rows));
    model::score_head(on, *c, size_t(b.rows), as<T>(rows), as<T>(w), numbers.data);
    kernels::for_rows(on, size_t(b.rows), to_cells{b, numbers.data, to.data});
  }
};
}  // namespace weft::rl
