// rmsnorm.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/rmsnorm.hpp>

namespace weft::kernels {
namespace detail {
template <class T> [[gnu::noinline]] T rmsnorm_row(size_t width, T const* x, T const* weight, T eps, T* y) {
  T sum = 0;
  for (size_t i = 0; i < width; ++i) sum = fma(x[i], x[i], sum);
  T const inverse = 1 / std::sqrt(sum / static_cast<T>(width) + eps);
  for (size_t i = 0; i < width; ++i) y[i] = x[i] * inverse * weight[i];
  return inverse;
}
// with n = x inverse and d = dy weight: dx += inverse (d - n mean(d n))
template <class T> [[gnu::noinline]] void rmsnorm_backward_row(size_t width, T const* x, T const* weight, T inverse, T const* dy, T* dx) {
  T sum = 0;
  for (size_t i = 0; i < width; ++i) sum = fma(dy[i] * weight[i], x[i], sum);
  T const mean = sum * inverse * inverse / static_cast<T>(width);
  for (size_t i = 0; i < width; ++i) dx[i] = fma(inverse, fma(-mean, x[i], dy[i] * weight[i]), dx[i]);
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
template <class T> void rmsnorm_backward(cpu_context& on, size_t rows, size_t width, T const* x, T const* weight, T const* inverse_rms, T const* dy, T* dx,
                                         T* dweight) {
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
