// rmsnorm.hpp — y = x * inverse_rms * weight, inverse_rms = 1 / sqrt(mean(x^2) + eps), row by row.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void rmsnorm(cpu_context& on, size_t rows, size_t width, T const* x /*[rows, width]*/, T const* weight /*[width]*/,
                                T eps, T* y /*[rows, width], may be x*/, T* inverse_rms /*[rows] or null*/);
template <class T> void rmsnorm_backward(cpu_context& on, size_t rows, size_t width, T const* x, T const* weight, T const* inverse_rms,
                                         T const* dy, T* dx /*[rows, width], added*/, T* dweight /*[width], added row by row*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/rmsnorm.hpp>
