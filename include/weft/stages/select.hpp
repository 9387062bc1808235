// stages/select.hpp — which tokens of a mini-batch Clip-Cov and KL-Cov treat apart (objective/covariance.hpp). It is decided over the whole
// mini-batch, from log-probs of a pass before the gradient pass, so that no cut into micro-batches changes it.
#pragma once
#include <weft/kernels/philox.hpp>
#include <weft/objective/choice.hpp>
#include <weft/objective/covariance.hpp>
#include "ports.hpp"

namespace weft::rl {
template <class M, class Objective> struct select_by_covariance {
  // what the loss reads of the i-th token of the mini-batch, and where it lies
  static objective::token<f32> token_at(size_t cell, in<current_log_probs<M>> lp, in<log_probs<training>> old, in<advantages> a) {
    objective::token<f32> t;
    t.log_prob = t.detached = lp.flat(cell);
    t.old_log_prob = old.flat(cell);
    t.advantage = a.flat(cell);
    return t;
  }
  static void run(in<order<M>> o, in<lengths<training>> n, in<included> use, in<draws<training>> draw, in<current_log_probs<M>> lp,
                  in<log_probs<training>> old, in<advantages> a, setting<Objective> loss, setting<decoding<training>> d,
                  scratch<token_numbers<0>> rank, scratch<token_indices<0>> cell, scratch<token_indices<1>> eligible,
                  scratch<token_indices<2>> heap, scratch<token_indices<3>> chosen, out<selected> to) {
    size_t const room = to.template extent<position<training>>(), each = n.template extent<group<training>>();
    size_t count = 0;
    for (size_t i = 0; i < to.count(); ++i) to.flat(i) = 0;
    for (size_t i = 0; i < o.count(); ++i) {
      size_t const s = size_t(o(i));
      for (size_t t = 0; use.flat(s) && t < size_t(n.flat(s)); ++t) cell.data[count++] = i32(s * room + t);
    }
    objective::covariance_means mean;
    for (size_t i = 0; i < count; ++i)
      mean.advantage += double(a.flat(size_t(cell.data[i]))), mean.log_prob += double(lp.flat(size_t(cell.data[i])));
    mean.advantage /= double(count), mean.log_prob /= double(count);

    auto const pick = [&](double ratio, auto const& may_be, auto const& rank_of) {
      for (size_t i = 0; i < count; ++i) {
        auto const token = token_at(size_t(cell.data[i]), lp, old, a);
        eligible.data[i] = may_be(token);
        rank.data[i] = rank_of(token, size_t(cell.data[i]));
      }
      objective::select_highest(count, rank.data, eligible.data, objective::covariance_share(ratio, std::int64_t(count)), heap.data,
                                chosen.data);
      for (size_t i = 0; i < count; ++i) to.flat(size_t(cell.data[i])) = chosen.data[i];
    };
    objective::visit(*loss, [&]<class Sum>(Sum const& one) {
      if constexpr (std::is_base_of_v<objective::kl_cov, Sum>) {
        pick(
            one.template of<objective::kl_cov>().ratio, [](auto const&) { return 1; },
            [&](auto const& token, size_t) { return objective::covariance(mean, token); });
      } else {
        auto const& term = one.template of<objective::clip_cov>();
        pick(
            term.ratio, [&](auto const& token) { return i32(term.eligible(mean, token)); },
            [&](auto const&, size_t at) {  // words of a block of the vocabulary that sampling never asks for
              size_t const s = at / room;
              return kernels::uniform(
                  kernels::philox({{~0u, std::uint32_t(at % room), std::uint32_t(s % each), draw.flat(s / each)}}, d->seed).word[0]);
            });
      }
    });
  }
};
}  // namespace weft::rl
