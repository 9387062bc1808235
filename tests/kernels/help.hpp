// help.hpp — what the tests of kernels share: data, comparison of bits and of sizes, finite differences.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include <weft/element.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/philox.hpp>

namespace help {
using namespace weft;

// n values around 0 with standard deviation `size`, a function of the seed
template <class T> std::vector<T> values(size_t n, u64 seed, double size = 1) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; ++i) {
    auto const words = kernels::philox({{static_cast<u32>(i), 0, 0, 0}}, seed);
    double sum = 0;
    for (int j = 0; j < 4; ++j) sum += kernels::uniform(words.word[j]) - 0.5;
    x[i] = static_cast<T>(sum * std::sqrt(3.0) * size);
  }
  return x;
}
inline std::vector<i32> integers(size_t n, u64 seed, u32 below) {
  std::vector<i32> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<i32>(kernels::philox({{static_cast<u32>(i), 1, 0, 0}}, seed).word[0] % below);
  return x;
}
template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
// max |a - b| / max |b|; infinite if a NaN is on one side
template <class A, class B> double distance(std::vector<A> const& a, std::vector<B> const& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, size = 1e-300;
  for (size_t i = 0; i < a.size(); ++i) {
    double const d = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= 1e300)) return HUGE_VAL;
    most = std::fmax(most, d), size = std::fmax(size, std::fabs(static_cast<double>(b[i])));
  }
  return most / size;
}
template <class T> std::vector<double> wide(std::vector<T> const& x) { return {x.begin(), x.end()}; }

// derivative of f() with respect to every element of x, which f reads, by central differences
template <class F> std::vector<double> slopes(std::vector<double>& x, F const& f) {
  std::vector<double> d(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    double const h = 1e-5, at = x[i];
    x[i] = at + h;
    double const above = f();
    x[i] = at - h;
    d[i] = (above - f()) / (2 * h);
    x[i] = at;
  }
  return d;
}
inline double dot(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
// f(context) for one thread without a pool and for pools of 1, 2 and 3 threads
template <class F> void on_every_pool(F const& f) {
  kernels::cpu_context alone;
  f(alone);
  for (size_t count : {1, 2, 3}) {
    kernels::threads pool(count);
    kernels::cpu_context on{&pool};
    f(on);
  }
}
}  // namespace help
