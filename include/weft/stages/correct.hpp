// stages/correct.hpp — rollout correction: where the policy that sampled (FP8 keys and values, stale weights, another engine) is not quite the one that
// trains, the log-probs of the step's weights are computed once more before the first update; each token gets an importance weight between the two, and
// sequences too far away are left out of the update. Their scores still count in their group.
#pragma once
#include <cmath>
#include <weft/objective/rollout_correction.hpp>
#include "ports.hpp"

namespace weft::rl {
struct correction_row {  // of one sequence, or added up over several
  objective::rollout_sums weights;
  double least_weight = 1e300, sequences = 0, rejected = 0;
  double train_ppl = 0, rollout_ppl = 0, log_ppl_diff = 0, log_ppl_abs = 0, ppl_ratio = 0;  // of each sequence's mean log-prob
  double square = 0, sequence_square = 0, prob_error = 0;                                   // e^2d by token and by sequence; e^|d|
};
struct correction_rows : port<correction_row, prompt<training>, group<training>> {};
struct correction_all : port<correction_row> {};
struct trained : port<i32, prompt<training>, group<training>> {};  // 1: an included sample that is not rejected

struct weigh_rollout {
  static void run(in<old_log_probs> old, in<log_probs<training>> roll, in<response_mask> mask, in<included> use,
                  setting<objective::rollout_correction> o, out<rollout_weights> weight, out<trained> keep, out<correction_rows> rows) {
    size_t const room = weight.extent<position<training>>();
    for (size_t i = 0; i < rows.count(); ++i) {
      size_t const at = i * room;
      correction_row& r = rows.flat(i) = {};
      bool const reject = objective::rollout_weights(*o, room, old.data + at, roll.data + at, mask.data + at, weight.data + at, r.weights);
      keep.flat(i) = use.flat(i) && !reject;
      double n = 0, train = 0, sampled = 0;
      for (size_t t = at; t < at + room; ++t) {
        if (mask.flat(t) == 0) continue;
        double const a = double(old.flat(t)), b = double(roll.flat(t)), d = a - b < -20 ? -20 : a - b > 20 ? 20 : a - b;
        n += 1, train += a, sampled += b;
        r.square += std::exp(2 * d), r.prob_error += std::exp(std::abs(d));
        r.least_weight = double(weight.flat(t)) < r.least_weight ? double(weight.flat(t)) : r.least_weight;
      }
      if (n == 0) continue;
      double const difference = (sampled - train) / n, whole = train - sampled;
      r.sequences = 1, r.rejected = reject;
      r.train_ppl = std::exp(-train / n), r.rollout_ppl = std::exp(-sampled / n);
      r.log_ppl_diff = difference, r.log_ppl_abs = std::abs(difference), r.ppl_ratio = std::exp(difference);
      r.sequence_square = std::exp(2 * (whole < -20 ? -20 : whole > 20 ? 20 : whole));
    }
  }
};
struct merge_corrections {  // in the order of samples
  static void run(in<correction_rows> rows, out<correction_all> all) {
    correction_row& to = all() = {};
    for (correction_row const& r : rows) {
      auto const& w = r.weights;
      auto& sum = to.weights;
      sum.tokens += w.tokens, sum.weight += w.weight, sum.weight_squares += w.weight_squares, sum.high += w.high, sum.low += w.low;
      sum.k1 += w.k1, sum.k3 += w.k3, sum.rejected_tokens += w.rejected_tokens;
      sum.max_weight = w.max_weight > sum.max_weight ? w.max_weight : sum.max_weight;
      to.least_weight = r.least_weight < to.least_weight ? r.least_weight : to.least_weight;
      to.sequences += r.sequences, to.rejected += r.rejected, to.train_ppl += r.train_ppl, to.rollout_ppl += r.rollout_ppl;
      to.log_ppl_diff += r.log_ppl_diff, to.log_ppl_abs += r.log_ppl_abs, to.ppl_ratio += r.ppl_ratio;
      to.square += r.square, to.sequence_square += r.sequence_square, to.prob_error += r.prob_error;
    }
  }
};
struct normalize_rollout_weights {  // rollout_is_batch_normalize: the mean weight becomes 1
  static void run(in<correction_all> all, setting<objective::rollout_correction> o, inout<rollout_weights> weight) {
    if (o->batch_normalize) objective::normalize_weights(weight.count(), all().weights, weight.data);
  }
};
}  // namespace weft::rl
