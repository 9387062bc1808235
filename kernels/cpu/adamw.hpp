// adamw.hpp (cpu)
#pragma once
#include <cmath>

#include <weft/kernels/adamw.hpp>
#include <weft/kernels/cpu/threads.hpp>

namespace weft::kernels {
template <class T> void adamw(cpu_context& on, size_t n, T* w, T* m, T* v, T const* g, adamw_step const& step, T gradient_scale) {
  T const beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2), eps = static_cast<T>(step.eps);
  T const keep = static_cast<T>(1 - step.lr * step.weight_decay), rate = static_cast<T>(step.lr / (1 - std::pow(step.beta1, step.step)));
  T const root = static_cast<T>(1 / std::sqrt(1 - std::pow(step.beta2, step.step)));
  T const rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  parallel_for(on, n, 1 << 13, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      T const d = g[i] * gradient_scale;
      m[i] = m[i] * beta1 + d * rest1;
      v[i] = v[i] * beta2 + d * d * rest2;
      w[i] = w[i] * keep - rate * (m[i] / (std::sqrt(v[i]) * root + eps));
    }
  });
}
template <class T> double sum_of_squares(cpu_context& on, size_t n, T const* x) {
  constexpr size_t leaves = 256;
  double part[leaves] = {};
  size_t const leaf = (n + leaves - 1) / leaves;
  parallel_for(on, leaves, 8, [&](size_t begin, size_t end) {
    for (size_t l = begin; l < end; ++l)
      for (size_t i = l * leaf; i < n && i < (l + 1) * leaf; ++i) part[l] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  });
  double sum = 0;
  for (double p : part) sum += p;
  return sum;
}
}  // namespace weft::kernels
