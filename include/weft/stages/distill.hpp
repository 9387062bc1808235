// stages/distill.hpp — one micro-batch of distillation: the policy's own samples, forward under the policy and under a teacher of any size with the
// same vocabulary, and the gradient of a loss of the divergence between the two at every token.
#pragma once
#include <weft/kernels/distill.hpp>
#include <weft/objective/distill.hpp>
#include "update.hpp"

namespace weft::rl {
struct include_finished {  // every sample that has tokens, whatever its score
  static void run(in<lengths<training>> n, in<finishes<training>> finish, out<included> use) {
    for (size_t i = 0; i < n.count(); ++i) use.flat(i) = n.flat(i) > 0 && finish.flat(i) != i32(rollout::finish::aborted);
  }
};

template <class Objective> struct divergence_rows {
  row_context at;
  Objective loss;
  f32 const* kl;  // [rows], for the metrics
  f32 operator()(size_t r, f32 value) const {
    if (!at.counts(r)) return 0;
    return loss.evaluate(objective::taught<f32>{value}, at.around(r), at.template over<typename Objective::mask>()).kl;
  }
  void operator()(size_t r, double* sums) const {
    if (at.counts(r)) loss.measure(objective::taught<f32>{kl[r]}, at.around(r), at.template over<typename Objective::mask>(), sums);
  }
};
template <class M, class Teacher, class Objective> struct distill_update {
  static_assert(Objective::metric_count <= sum_tokens && Objective::statistics == 0);
  template <class E> static void run(E& on, in<bins<M>> bin, in<bin_order<M>> order, in<tallies<M>> count, in<prompts<training>> p,
                                     in<prompt_lengths<training>> np, in<tokens<training>> t, in<lengths<training>> n, setting<config<M>> c,
                                     setting<config<Teacher>> teacher, setting<Objective> loss, setting<token_budget<M>> budget,
                                     state<rope_table<M>> rope, state<weights<M>> w, state<rope_table<Teacher>> teacher_rope,
                                     state<weights<Teacher>> teacher_w, scratch<packed<M>> index, scratch<activations<M, M>> room,
                                     scratch<hidden<M, M>> h, scratch<head_hidden<M, M>> rows,
                                     scratch<activations<Teacher, M>> teacher_room, scratch<hidden<Teacher, M>> teacher_h,
                                     scratch<head_hidden<Teacher, M>> teacher_rows, scratch<row_numbers<M>> numbers,
                                     scratch<logit_pair<M>> z, inout<gradients<M>> g, inout<loss_sums<M>> sums) {
    using T = typename E::compute;
    update_room<M, T> const u{bin, order, count, *c, *budget, rope.data, as<T>(w), index, room, h, rows, numbers, g, sums};
    auto const b = assembled(on, sequences_of<training>(p, np, t, n), bin, order, index);
    size_t const some = size_t(b.rows), vocab = size_t(c->vocab);
    model::forward<T>(on, *teacher, budget->recompute != 0, teacher_rope.data, as<T>(teacher_w), view_of(b), as<T>(teacher_room),
                      as<T>(teacher_h));
    kernels::gather_rows(on, some, size_t(teacher->hidden), b.row, as<T>(teacher_h), as<T>(teacher_rows));
    u.forward(on, b);
    divergence_rows<Objective> const of{{b, n.data, order.data, &bin.data->begin, count.data, nullptr, 0}, *loss, u.number(0)};
    kernels::head_reverse_kl<T>(on, some, vocab, {u.read(), model::head_weight(*c, u.weights), size_t(c->hidden)},
                                {as<T>(teacher_rows), model::head_weight(*teacher, as<T>(teacher_w)), size_t(teacher->hidden)},
                                size_t(loss->template of<objective::reverse_kl>().best), z.template extent<head_row>(), as<T>(z), of,
                                u.number(0), u.gradient(), model::head_weight(*c, g.data));
    kernels::sum_rows<Objective::metric_count>(on, some, of, sums.data);
    u.backward(on, b), u.count(on, b);
  }
};
}  // namespace weft::rl
