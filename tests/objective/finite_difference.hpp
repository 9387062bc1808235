// finite_difference.hpp — the test that every term gets for nothing: its gradient is the derivative of its value, in each log-prob
// and each entropy, where what the term takes as constant (t.detached) stays.
#pragma once
#include <cmath>
#include <random>

#include "batch.hpp"

namespace weft::test {
// Random answers, some short, one of them empty, one with a hole; ratios from close to 1 to far outside every clip range.
inline batch<double> random_batch(unsigned seed, size_t rows = 6, size_t width = 7, double spread = 0.4) {
  std::mt19937 draw(seed);
  std::normal_distribution<double> normal;
  batch<double> b;
  b.rows = rows, b.width = width;
  auto const count = rows * width;
  b.mask.resize(count);
  for (size_t r = 0; r < rows; ++r) {
    size_t const length = r == 1 ? 0 : 1 + draw() % width;
    for (size_t t = 0; t < length; ++t) b.mask[r * width + t] = !(r == 2 && t == 1 && length > 2);
  }
  for (auto* x : {&b.log_prob, &b.entropy, &b.old_log_prob, &b.ref_log_prob, &b.advantage, &b.rollout_weight}) x->resize(count);
  for (size_t i = 0; i < count; ++i) {
    b.log_prob[i] = -std::abs(1.5 * normal(draw)) - 0.01;
    b.old_log_prob[i] = b.log_prob[i] + spread * normal(draw);
    b.ref_log_prob[i] = b.log_prob[i] + spread * normal(draw);
    b.entropy[i] = std::abs(normal(draw));
    b.advantage[i] = normal(draw);
    b.selected.push_back(draw() % 2);
    b.rollout_weight[i] = 0.5 + std::abs(normal(draw));
  }
  return b;
}

// Largest difference between the gradient and central differences, relative to max(1, |gradient|). A kink within the step is passed over.
template <class O> double gradient_error(O const& o, batch<double> b) {
  auto const n = count<typename O::mask>(b.rows, b.width, b.mask);
  b.detached = b.log_prob;
  auto const found = evaluate(o, b, n, 0, b.rows);
  double error = 0;
  auto check = [&](std::vector<double>& x, std::vector<double> const& gradient, size_t i) {
    double const h = 1e-6, middle = x[i];
    auto loss_at = [&](double v) {
      x[i] = v;
      double const loss = evaluate(o, b, n, 0, b.rows).loss;
      x[i] = middle;
      return loss;
    };
    double const up = (loss_at(middle + h) - found.loss) / h, down = (found.loss - loss_at(middle - h)) / h;
    if (std::abs(up - down) > 1e-3 * std::fmax(1.0, std::abs(up))) return;
    error = std::fmax(error, std::abs((up + down) / 2 - gradient[i]) / std::fmax(1.0, std::abs(gradient[i])));
    if (gradient[i] != gradient[i]) error = INFINITY;
  };
  for (size_t i = 0; i < b.mask.size(); ++i) {
    check(b.log_prob, found.log_prob, i);
    check(b.entropy, found.entropy, i);
  }
  return error;
}
}  // namespace weft::test
