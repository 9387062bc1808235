// The reverse KL to a teacher against its definition in double, its gradient against finite differences, over all ids and over the teacher's best.
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>
#include <weft/kernels/distill.hpp>

using namespace weft;

namespace {
constexpr size_t rows = 7, vocab = 41, width = 6, teacher_width = 9;
struct heads {
  std::vector<double> hidden, weight, teacher_hidden, teacher_weight;
  heads() {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (auto [v, n] : {std::pair{&hidden, rows * width},
                        {&weight, vocab * width},
                        {&teacher_hidden, rows * teacher_width},
                        {&teacher_weight, vocab * teacher_width}})
      for (size_t i = 0; i < n; ++i) v->push_back(normal(random));
  }
  std::vector<double> distribution(std::vector<double> const& h, std::vector<double> const& w, size_t each, size_t r) const {
    std::vector<double> z(vocab);
    double sum = 0;
    for (size_t j = 0; j < vocab; ++j)
      for (size_t k = 0; k < each; ++k) z[j] += h[r * each + k] * w[j * each + k];
    for (double& x : z) sum += x = std::exp(x);
    for (double& x : z) x /= sum;
    return z;
  }
  double kl(size_t r, size_t best) const {
    auto const p = distribution(hidden, weight, width, r), q = distribution(teacher_hidden, teacher_weight, teacher_width, r);
    std::vector<size_t> ids(vocab);
    std::iota(ids.begin(), ids.end(), 0u);
    std::sort(ids.begin(), ids.end(), [&](size_t a, size_t b) { return q[a] > q[b]; });
    double sum = 0, p_rest = 0, q_rest = 0;
    for (size_t i = 0; i < vocab; ++i) {
      size_t const j = ids[i];
      if (best == 0 || i < best) sum += p[j] * std::log(p[j] / q[j]);
      else p_rest += p[j], q_rest += q[j];
    }
    return sum + (p_rest > 0 ? p_rest * std::log(p_rest / q_rest) : 0);
  }
};
double coefficient(size_t r) { return r == 2 ? 0 : 0.3 + 0.1 * double(r); }
struct outcome {
  std::vector<double> kl, dhidden, dweight;
};
outcome run(heads const& h, size_t best, size_t chunk) {
  kernels::cpu_context on;
  outcome o{std::vector<double>(rows), std::vector<double>(rows * width, NAN), std::vector<double>(vocab * width)};
  std::vector<double> logits(2 * chunk * vocab);
  auto const loss = [](size_t r, double) { return coefficient(r); };
  kernels::head_reverse_kl<double>(on, rows, vocab, {h.hidden.data(), h.weight.data(), width},
                                   {h.teacher_hidden.data(), h.teacher_weight.data(), teacher_width}, best, chunk, logits.data(), loss,
                                   o.kl.data(), o.dhidden.data(), o.dweight.data());
  return o;
}
}  // namespace

TEST_CASE("reverse KL to a teacher: value, gradient, and no word of the chunk") {
  heads h;
  for (size_t best : {0, 1, 5, 40, 41}) {
    CAPTURE(best);
    auto const o = run(h, best, 3);
    for (size_t r = 0; r < rows; ++r) CHECK(o.kl[r] == doctest::Approx(h.kl(r, best)).epsilon(1e-9));
    auto const loss = [&] {
      double sum = 0;
      for (size_t r = 0; r < rows; ++r) sum += coefficient(r) * h.kl(r, best);
      return sum;
    };
    auto const check = [&](std::vector<double>& x, std::vector<double> const& gradient) {
      for (size_t i = 0; i < x.size(); i += 5) {
        double const keep = x[i], step = 1e-6;
        x[i] = keep + step;
        double const up = loss();
        x[i] = keep - step;
        double const down = loss();
        x[i] = keep;
        CHECK(gradient[i] == doctest::Approx((up - down) / (2 * step)).epsilon(1e-5).scale(1));
      }
    };
    check(h.hidden, o.dhidden), check(h.weight, o.dweight);
    auto const whole = run(h, best, 64);
    CHECK(whole.kl == o.kl);
    CHECK(whole.dhidden == o.dhidden);
  }
  h.teacher_hidden.assign(rows * teacher_width, 0), h.hidden.assign(rows * width, 0);  // both uniform: ties, and nothing to learn
  for (size_t best : {0, 7}) {
    auto const o = run(h, best, 3);
    for (double x : o.kl) CHECK(std::abs(x) < 1e-12);
    for (double x : o.dweight) CHECK(std::abs(x) < 1e-12);
  }
}
