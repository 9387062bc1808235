#include <weft/kernels/cpu/math.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
double ulps(float got, double want) {  // distance in units of the last place of the wanted value
  int exponent;
  std::frexp(want, &exponent);
  return std::fabs(double(got) - want) / std::ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}
template <class F> float one(F const& f, float x) { return f(broadcast(x))[lanes<float> / 2]; }
}  // namespace

TEST_CASE("exp of a vector is within 2 units of the last place, below the normal range too") {
  double worst = 0;
  for (double x = -103; x < 88.7; x += 0.00317)
    worst = std::fmax(worst, ulps(one([](auto v) { return kernels::exp(v); }, float(x)), std::exp(double(float(x)))));
  for (double x = -1; x < 1; x += 1e-5)
    worst = std::fmax(worst, ulps(one([](auto v) { return kernels::exp(v); }, float(x)), std::exp(double(float(x)))));
  CHECK(worst < 2);
  auto const e = [](float x) { return one([](auto v) { return kernels::exp(v); }, x); };
  CHECK(e(0) == 1);
  CHECK(e(-0.0f) == 1);
  CHECK(e(88.8f) == HUGE_VALF);
  CHECK(e(HUGE_VALF) == HUGE_VALF);
  CHECK(e(-200) == 0);
  CHECK(e(-HUGE_VALF) == 0);
  CHECK(std::isnan(e(std::nanf(""))));
}

TEST_CASE("log of a vector is within 2 units of the last place, near 1 too") {
  double worst = 0;
  auto const check = [&](float x) { worst = std::fmax(worst, ulps(one([](auto v) { return kernels::log(v); }, x), std::log(double(x)))); };
  for (double x = 1.2e-38; x < 3e38; x *= 1.0013) check(float(x));
  for (u32 i = 0; i < 2000; ++i) check(1 - float(i) * 0x1p-24f), check(1 + float(i) * 0x1p-23f), check(0.5f + float(i) * 2.5e-4f);
  CHECK(worst < 2);
  CHECK(one([](auto v) { return kernels::log(v); }, 1.0f) == 0);
}

TEST_CASE_TEMPLATE("vectors: fma, broadcast, parts, sums, transpose", T, float, double) {
  auto const x = help::values<T>(3 * lanes<T>, 1);
  vec<T> const a = load(x.data()), b = load(x.data() + lanes<T>), c = load(x.data() + 2 * lanes<T>), f = fma(a, b, c);
  for (size_t i = 0; i < lanes<T>; ++i) CHECK(f[i] == kernels::fma(x[i], x[lanes<T> + i], x[2 * lanes<T> + i]));
  CHECK(std::signbit(broadcast(T(-0.0))[0]));
  for (size_t n = 1; n < lanes<T>; ++n) {
    std::vector<T> to(lanes<T>, T(7));
    vec<T> const part = load_part(x.data(), n);
    store_part(to.data(), part, n);
    for (size_t i = 0; i < lanes<T>; ++i) {
      CHECK(part[i] == (i < n ? x[i] : T(0)));
      CHECK(to[i] == (i < n ? x[i] : T(7)));
    }
  }
  vec<T> counting{}, rows[lanes<T>];
  for (size_t i = 0; i < lanes<T>; ++i) counting[i] = T(i + 1);
  CHECK(sum_of<T>(counting) == T(lanes<T> * (lanes<T> + 1) / 2));
  CHECK(maximum_of<T>(-counting) == -1);
  for (size_t i = 0; i < lanes<T>; ++i) rows[i] = counting + T(100 * i);
  transpose<T>(rows);
  for (size_t i = 0; i < lanes<T>; ++i)
    for (size_t j = 0; j < lanes<T>; ++j) CHECK(rows[i][j] == T(i + 1 + 100 * j));
}
