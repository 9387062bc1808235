// elementwise.hpp (cpu): memory-bound loops, left to the compiler; a sum over rows is cut by columns, so its order is that of the rows.
#pragma once
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/elementwise.hpp>

namespace weft::kernels {
template <class T> void add(cpu_context& on, size_t count, T const* x, T* y) {
  parallel_for(on, count, 1 << 14, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] += x[i];
  });
}
template <class T> void fill(cpu_context& on, size_t count, T value, T* y) {
  parallel_for(on, count, 1 << 14, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = value;
  });
}
template <class T> void add_bias(cpu_context& on, size_t rows, size_t width, T const* bias, T* y) {
  parallel_for(on, rows, (1 << 14) / (width + 1) + 1, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r)
      for (size_t i = 0; i < width; ++i) y[r * width + i] += bias[i];
  });
}
template <class T> void bias_backward(cpu_context& on, size_t rows, size_t width, T const* dy, T* dbias) {
  parallel_for(on, width, 64, [=](size_t begin, size_t end) {
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = begin; i < end; ++i) dbias[i] += dy[r * width + i];
  });
}
}  // namespace weft::kernels
