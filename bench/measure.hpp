// measure.hpp — what benches share: the best time of a function, numbers to compute with, and matrix products beside those of OpenBLAS.
// Other programs may be running: a time is the best of many, and what is compared takes turns. With one thread it is the CPU time of that
// thread, which others hardly disturb; with more it is what the clock on the wall says.
#pragma once
#include <time.h>

#include <cmath>
#include <vector>

#include <weft/kernels/gemm.hpp>
#include <weft/kernels/philox.hpp>
#ifdef WEFT_BENCH_BLAS
#include <cblas.h>
#endif

namespace measure {
using namespace weft;

inline clockid_t basis = CLOCK_MONOTONIC;
inline double now() {  // seconds
  timespec t;
  clock_gettime(basis, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
inline void use_threads(size_t count) {
  basis = count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
#ifdef WEFT_BENCH_BLAS
  openblas_set_num_threads(static_cast<int>(count));
#endif
}
inline char const* basis_name() { return basis == CLOCK_MONOTONIC ? "wall-clock time" : "CPU time of the only thread"; }

// The best time of one call, of at least 3 and of as many as there is time for; in seconds.
template <class F> double best(double budget, F const& f) {
  double time = 1e9;
  double const start = now();
  for (int i = 0; i < 3 || (i < 2000 && now() - start < budget); ++i) {
    double const t = now();
    f();
    time = std::fmin(time, now() - t);
  }
  return time;
}
template <class F> double seconds(F const& f) { return best(0.4, f); }

inline std::vector<f32> numbers(size_t n) {  // uniform in (-0.5, 0.5)
  std::vector<f32> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = kernels::uniform(kernels::philox({{static_cast<u32>(i), 0, 0, 0}}, 1).word[0]) - 0.5f;
  return x;
}

enum class form { forward, input_gradient, weight_gradient };  // a b^T, a b, c += a^T b
struct product {
  form what;
  size_t m, n, k;
  double flops() const { return 2.0 * double(m) * double(n) * double(k); }
};
// Best times of a product with our kernels and with OpenBLAS (0: not there).
struct times {
  double own, blas;
};
inline times compare(kernels::cpu_context& on, product const& p) {
  auto const a = numbers(p.m * p.k), b = numbers(p.n * p.k);
  std::vector<f32> c(p.m * p.n);
  times t{1e9, 0};
  for (int turn = 0; turn < 4; ++turn) {
    t.own = std::fmin(t.own, best(0.1, [&] {
                        switch (p.what) {
                          case form::forward:
                            return kernels::gemm_nt(on, p.m, p.n, p.k, a.data(), p.k, b.data(), p.k, c.data(), p.n, false);
                          case form::input_gradient:
                            return kernels::gemm_nn(on, p.m, p.n, p.k, a.data(), p.k, b.data(), p.n, c.data(), p.n, false);
                          case form::weight_gradient:
                            return kernels::gemm_tn(on, p.m, p.n, p.k, a.data(), p.m, b.data(), p.n, c.data(), p.n, true);
                        }
                      }));
#ifdef WEFT_BENCH_BLAS
    auto const m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    bool const across = p.what == form::weight_gradient, turned = p.what == form::forward;
    double const blas = best(0.1, [&] {
      cblas_sgemm(CblasRowMajor, across ? CblasTrans : CblasNoTrans, turned ? CblasTrans : CblasNoTrans, m, n, k, 1, a.data(),
                  across ? m : k, b.data(), turned ? k : n, across ? 1 : 0, c.data(), n);
    });
    t.blas = turn ? std::fmin(t.blas, blas) : blas;
#endif
  }
  return t;
}
}  // namespace measure
