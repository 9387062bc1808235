// adamw.hpp (cpu)
#pragma once
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>

namespace weft::kernels {
template <class T> void adamw(cpu_context& on, size_t n, T* w, T* m, T* v, T const* g, adamw_step const& step, T gradient_scale) {
  T const keep = static_cast<T>(1 - step.lr * step.weight_decay), rate = static_cast<T>(step.lr / (1 - std::pow(step.beta1, step.step)));
  T const root = static_cast<T>(1 / std::sqrt(1 - std::pow(step.beta2, step.step))), eps = static_cast<T>(step.eps);
  T const beta1 = static_cast<T>(step.beta1), rest1 = static_cast<T>(1 - step.beta1), beta2 = static_cast<T>(step.beta2),
          rest2 = static_cast<T>(1 - step.beta2);
  parallel_for(on, n, 1 << 13, [=](size_t begin, size_t end) {
    each_vector<T>(end - begin, [=](size_t offset, auto at) {
      size_t const i = begin + offset;
      vec<T> const d = at.load(g + i) * broadcast(gradient_scale);
      vec<T> const mean = fma(at.load(m + i), broadcast(beta1), d * broadcast(rest1));
      vec<T> const square = fma(at.load(v + i), broadcast(beta2), d * d * broadcast(rest2));
      vec<T> const change = broadcast(rate) * (mean / fma(sqrt(square), broadcast(root), broadcast(eps)));
      at.store(m + i, mean);
      at.store(v + i, square);
      at.store(w + i, fma(at.load(w + i), broadcast(keep), -change));
    });
  });
}
template <class T> double sum_of_squares(cpu_context& on, size_t n, T const* x) {
  constexpr size_t leaves = 256, width = 16;
  size_t const leaf = ((n + leaves - 1) / leaves + width - 1) / width * width;
  double part[leaves];
  parallel_for(on, leaves, 8, [&](size_t begin, size_t end) {
    for (size_t l = begin; l < end; ++l) {
      double lane[width] = {};
      size_t const last = (l + 1) * leaf < n ? (l + 1) * leaf : n;
      size_t i = l * leaf;
      for (; i + width <= last; i += width)
        for (size_t j = 0; j < width; ++j) lane[j] = fma(static_cast<double>(x[i + j]), static_cast<double>(x[i + j]), lane[j]);
      for (; i < last; ++i) lane[i % width] = fma(static_cast<double>(x[i]), static_cast<double>(x[i]), lane[i % width]);
      part[l] = 0;
      for (double s : lane) part[l] += s;
    }
  });
  double sum = 0;
  for (double p : part) sum += p;
  return sum;
}
template <class T> void clipped_adamw(cpu_context& on, size_t n, adamw_options const& o, T const* g, i32 const* counted, f32 const* lr,
                                      T* w, T* /*master*/, T* m, T* v, i32* steps, f32* norm) {
  double const size = std::sqrt(sum_of_squares(on, n, g));
  *norm = static_cast<f32>(size);
  if (*counted == 0 || !(size - size == 0)) return;
  ++*steps;
  adamw(on, n, w, m, v, g, {static_cast<double>(*lr), o.beta1, o.beta2, o.eps, o.weight_decay, *steps},
        static_cast<T>(clip_coefficient(size, o.clip_grad)));
}
}  // namespace weft::kernels
