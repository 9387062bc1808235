// elementwise.hpp — sums and copies over flat arrays and rows.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void add(cpu_context& on, size_t count, T const* x, T* y);                                   // y += x
template <class T> void fill(cpu_context& on, size_t count, T value, T* y);                                     // y = value
template <class T> void add_bias(cpu_context& on, size_t rows, size_t width, T const* bias /*[width]*/, T* y);  // y[rows, width] += bias
// dbias[width] += the rows of dy[rows, width], first to last: cutting the rows into several calls changes no bit
template <class T> void bias_backward(cpu_context& on, size_t rows, size_t width, T const* dy, T* dbias);
}  // namespace weft::kernels
#include <weft/kernels/cpu/elementwise.hpp>
