// math.hpp — the scalar functions that kernels share.
#pragma once
#include <cmath>

#include <weft/kernels/cpu/vector.hpp>

namespace weft::kernels {

template <class T> inline constexpr T infinity = static_cast<T>(__builtin_inf());
}  // namespace weft::kernels
