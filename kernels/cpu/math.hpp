// math.hpp — the scalar functions that kernels share.
#pragma once
#include <cmath>

#include <weft/element.hpp>

namespace weft::kernels {
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <class T> inline constexpr T infinity = static_cast<T>(__builtin_inf());
}  // namespace weft::kernels
