#include <weft/kernels/adamw.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

TEST_CASE("adamw follows torch.optim.AdamW over several steps") {
  size_t const n = 1037;
  auto const start = help::values<double>(n, 1);
  auto w = start;
  std::vector<double> m(n), v(n), reference = start, rm(n), rv(n);
  std::vector<float> fw(start.begin(), start.end()), fm(n), fv(n);
  cpu_context on;
  for (i32 step = 1; step <= 5; ++step) {
    adamw_step const s{0.01, 0.9, 0.99, 1e-6, 0.1, step};
    auto const g = help::values<double>(n, u64(100 + step));
    std::vector<float> const fg(g.begin(), g.end());
    adamw(on, n, w.data(), m.data(), v.data(), g.data(), s, 0.5);
    adamw(on, n, fw.data(), fm.data(), fv.data(), fg.data(), s, 0.5f);
    for (size_t i = 0; i < n; ++i) {
      double const d = g[i] * 0.5;
      reference[i] -= s.lr * s.weight_decay * reference[i];
      rm[i] = s.beta1 * rm[i] + (1 - s.beta1) * d;
      rv[i] = s.beta2 * rv[i] + (1 - s.beta2) * d * d;
      double const mean = rm[i] / (1 - std::pow(s.beta1, step)), square = rv[i] / (1 - std::pow(s.beta2, step));
      reference[i] -= s.lr * mean / (std::sqrt(square) + s.eps);
    }
  }
  CHECK(help::distance(w, reference) < 1e-14);
  CHECK(help::distance(fw, reference) < 1e-6);
  CHECK(help::distance(fm, rm) < 1e-6);
  CHECK(help::distance(fv, rv) < 1e-6);
}

TEST_CASE("adamw and sum_of_squares have the same bits on every pool") {
  size_t const n = 100003;
  auto const w0 = help::values<float>(n, 1), g = help::values<float>(n, 2);
  std::vector<float> first;
  double first_sum = -1;
  help::on_every_pool([&](cpu_context& on) {
    auto w = w0;
    std::vector<float> m(n), v(n);
    adamw(on, n, w.data(), m.data(), v.data(), g.data(), adamw_step{1e-3}, 1.0f);
    double const sum = sum_of_squares(on, n, g.data());
    if (first.empty()) first = w, first_sum = sum;
    CHECK(help::same_bits(w, first));
    CHECK(sum == first_sum);
  });
  double expected = 0;
  for (float x : g) expected += double(x) * double(x);
  CHECK(first_sum == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("sum_of_squares of few elements, and of a NaN") {
  cpu_context on;
  for (size_t n = 0; n < 40; ++n) {
    std::vector<float> const x(n, 2);
    CHECK(sum_of_squares(on, n, x.data()) == 4.0 * double(n));
  }
  std::vector<float> x(5000, 1);
  x[4321] = std::nanf("");
  CHECK(std::isnan(sum_of_squares(on, x.size(), x.data())));
}
