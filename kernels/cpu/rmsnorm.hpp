// rmsnorm.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/rmsnorm.hpp>

namespace weft::kernels {
namespace detail {
template <class T> [[gnu::noinline]] T rmsnorm_row(size_t width, T const* x, T const* weight, T eps, T* y) {
  vec<T> sum{};
  each_vector<T>(width, [&](size_t i, auto at) {
    vec<T> const v = at.load(x + i);
    sum = fma(v, v, sum);
  });
  T const inverse = 1 / std::sqrt(sum_of<T>(sum) / static_cast<T>(width) + eps);
  each_vector<T>(width, [&](size_t i, auto at) { at.store(y + i, at.load(x + i) * broadcast(inverse) * at.load(weight + i)); });
  return inverse;
}
// with n = x inverse and d = dy weight: dx += inverse (d - n mean(d n))
template <class T> [[gnu::noinline]] void rmsnorm_backward_row(size_t width, T const* x, T const* weight, T inverse, T const* dy, T* dx) {
  vec<T> sum{};
  each_vector<T>(width, [&](size_t i, auto at) { sum = fma(at.load(dy + i) * at.load(weight + i), at.load(x + i), sum); });
  vec<T> const minus_mean = broadcast(-(sum_of<T>(sum) * inverse * inverse / static_cast<T>(width))), scale = broadcast(inverse);
  each_vector<T>(width, [&](size_t i, auto at) {
    at.store(dx + i, fma(scale, fma(minus_mean, at.load(x + i), at.load(dy + i) * at.load(weight + i)), at.load(dx + i)));
  });
}
}  // namespace detail

template <class T> void rmsnorm(cpu_context& on, size_t rows, size_t width, T const* x, T const* weight, T eps, T* y, T* inverse_rms) {
  parallel_for(on, rows, (1 << 13) / (width + 1) + 1, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      T const inverse = detail::rmsnorm_row(width, x + r * width, weight, eps, y + r * width);
      if (inverse_rms) inverse_rms[r] = inverse;
    }
  });
}
template <class T> void rmsnorm_backward(cpu_context& on, size_t rows, size_t width, T const* x, T const* weight, T const* inverse_rms,
                                         T const* dy, T* dx, T* dweight) {
  parallel_for(on, width, 64, [=](size_t begin, size_t end) {
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = begin; i < end; ++i) dweight[i] = fma(dy[r * width + i], x[r * width + i] * inverse_rms[r], dweight[i]);
  });
  parallel_for(on, rows, (1 << 13) / (width + 1) + 1, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r)
      detail::rmsnorm_backward_row(width, x + r * width, weight, inverse_rms[r], dy + r * width, dx + r * width);
  });
}
}  // namespace weft::kernels
