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

TEST_CASE("codes of eight bits: decoding inverts encoding, order is kept, rounding is unbiased") {
  auto const check = []<int exponents>(u32 top) {
    for (u32 code = 0; code <= top; ++code) {
      float const x = detail::decoded<exponents>(code);
      CHECK(detail::encoded<exponents>(x, 0) == code);
      CHECK(detail::encoded<exponents>(x, 0xffff) == code);
      if (code > 0) CHECK(x > detail::decoded<exponents>(code - 1));
    }
    CHECK(detail::decoded<exponents>(top) == 1);
    for (float x : {0.9f, 0.337f, 0.0123f, 3e-4f, 2e-5f}) {
      double mean = 0;
      for (u32 r = 0; r < 65536; ++r) mean += double(detail::decoded<exponents>(detail::encoded<exponents>(x, r))) / 65536;
      CHECK(mean == doctest::Approx(double(x)).epsilon(1e-4));
    }
  };
  check.operator()<4>(15 << 3);
  check.operator()<5>(31 << 3);
}

TEST_CASE("steps with narrow moments go where those with wide ones go") {
  size_t const n = 1000;  // not a whole number of blocks
  cpu_context on;
  std::vector<float> norms;
  auto const run = [&](moment_format format) {
    auto w = help::values<float>(n, 1);
    std::vector<std::byte> moments(moment_layout_of(format, n).end);
    adamw_options o;
    o.moments = format;
    i32 steps = 0, counted = 1;
    float const lr = 1e-2f;
    float norm = 0;
    for (u64 step = 0; step < 40; ++step) {
      auto g = help::values<float>(n, 100 + step);
      for (size_t i = 0; i < n; ++i) g[i] = g[i] * (i % 5 ? 1e-3f : 1.0f) + (i % 2 ? 0.002f : -0.002f);
      clipped_adamw(on, n, o, g.data(), &counted, &lr, w.data(), static_cast<float*>(nullptr), moments.data(), &steps, &norm);
      norms.push_back(norm);
    }
    CHECK(steps == 40);
    counted = 0;
    auto const kept = w;
    clipped_adamw(on, n, o, w.data(), &counted, &lr, w.data(), static_cast<float*>(nullptr), moments.data(), &steps, &norm);
    CHECK(w == kept);
    return w;
  };
  auto const start = help::values<float>(n, 1), wide = run(moment_format::f32);
  double moved = 0;
  for (size_t i = 0; i < n; ++i) moved += std::pow(double(wide[i]) - double(start[i]), 2);
  for (auto format : {moment_format::bf16, moment_format::f8}) {
    auto const narrow = run(format);
    double apart = 0;
    for (size_t i = 0; i < n; ++i) apart += std::pow(double(narrow[i]) - double(wide[i]), 2);
    CHECK(apart < (format == moment_format::bf16 ? 1e-4 : 0.01) * moved);
  }
}
