// batch.hpp — plain loops over a rectangular batch: what a stage does with an objective, for the tests and for golden_rl.
#pragma once
#include <cstddef>
#include <vector>

#include <weft/objective/objective.hpp>

namespace weft::test {
template <class T> struct batch {  // every vector is [rows, width] or empty
  size_t rows = 0, width = 0;
  std::vector<i32> mask, selected;
  std::vector<T> log_prob, entropy, old_log_prob, ref_log_prob, advantage, rollout_weight;
  std::vector<T> detached;  // empty: log_prob

  objective::token<T> operator()(size_t i) const {
    auto at = [i](std::vector<T> const& x, T otherwise) { return x.empty() ? otherwise : x[i]; };
    objective::token<T> t;
    t.log_prob = log_prob[i];
    t.detached = at(detached, t.log_prob);
    t.entropy = at(entropy, T(0));
    t.old_log_prob = at(old_log_prob, t.log_prob);
    t.ref_log_prob = at(ref_log_prob, t.log_prob);
    t.advantage = at(advantage, T(0));
    t.rollout_weight = at(rollout_weight, T(1));
    t.selected = selected.empty() ? 0 : selected[i];
    return t;
  }
};

template <class Mask> objective::counts<Mask> count(size_t rows, size_t width, std::vector<i32> const& mask) {
  objective::counts<Mask> n;
  for (size_t r = 0; r < rows; ++r) objective::count_row(width, mask.data() + r * width, n);
  return n;
}

// The passes over rows [first, last): statistics, then loss and gradient, then metrics. input(i) is slot i = row width + column,
// store(i, loss) takes what was found there. Returns the metrics.
template <class O, class T, class Input, class Store> std::vector<double> run(O const& o, size_t width, std::vector<i32> const& mask,
                                                                              objective::counts<typename O::mask> const& n, size_t first,
                                                                              size_t last, Input const& input, Store const& store) {
  std::vector<double> metrics(O::metric_count);
  for (size_t r = first; r < last; ++r) {
    std::vector<T> statistics(O::statistics + 1);
    objective::sequence<T> s{T(0), statistics.data()};
    for (size_t i = r * width; i < (r + 1) * width; ++i)
      if (mask[i] != 0) o.reduce(input(i), statistics.data()), s.length += 1;
    for (size_t i = r * width; i < (r + 1) * width; ++i)
      if (mask[i] != 0) store(i, o.evaluate(input(i), s, n)), o.measure(input(i), s, n, metrics.data());
  }
  return metrics;
}

template <class T> struct outcome {
  double loss = 0;                   // sum of what evaluate() gave
  std::vector<T> log_prob, entropy;  // gradients [rows, width]
  std::vector<double> metrics;
};
template <class O, class T>
outcome<T> evaluate(O const& o, batch<T> const& b, objective::counts<typename O::mask> const& n, size_t first, size_t last) {
  outcome<T> out;
  out.log_prob.resize(b.rows * b.width);
  out.entropy.resize(b.rows * b.width);
  out.metrics = run<O, T>(o, b.width, b.mask, n, first, last, b, [&](size_t i, objective::token_loss<T> const& l) {
    out.loss += double(l.value);
    out.log_prob[i] = l.log_prob;
    out.entropy[i] = l.entropy;
  });
  return out;
}
template <class O, class T> outcome<T> evaluate(O const& o, batch<T> const& b) {
  return evaluate(o, b, count<typename O::mask>(b.rows, b.width, b.mask), 0, b.rows);
}
}  // namespace weft::test
