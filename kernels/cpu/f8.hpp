// f8.hpp — f8e4m3 (1 sign, 4 exponent, 3 mantissa bits, bias 7; no infinity, 0x7f is NaN, largest 448) to and from float.
#pragma once
#include <cstring>

#include <weft/element.hpp>

namespace weft::kernels {
// To nearest, ties to even; beyond 448 becomes 448, NaN stays NaN.
inline f8e4m3 to_f8e4m3(float x) {
  u32 bits;
  std::memcpy(&bits, &x, sizeof bits);
  u32 const sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return {static_cast<std::uint8_t>(sign | 0x7f)};
  if (size >= 0x43e80000) return {static_cast<std::uint8_t>(sign | 0x7e)};  // 464, half way beyond 448, and more
  if (size < 0x3c800000) {  // below 2^-6: multiples of 2^-9; adding 2^14 leaves them in the low bits, rounded
    float magnitude;
    std::memcpy(&magnitude, &size, sizeof magnitude);
    float const shifted = magnitude + 16384.0f;
    u32 rounded;
    std::memcpy(&rounded, &shifted, sizeof rounded);
    return {static_cast<std::uint8_t>(sign | (rounded - 0x46800000))};
  }
  u32 const rounded = size + 0x7ffff + (size >> 20 & 1);
  return {static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120 << 3)))};
}
// The seven bits as those of a float are the value times 2^-120, below the normal range too.
inline float from_f8e4m3(f8e4m3 x) {
  u32 const size = x.bits & 0x7f, bits = (static_cast<u32>(x.bits & 0x80) << 24) | (size == 0x7f ? 0x7fc00000 : size << 20);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value * 0x1p120f;
}
}  // namespace weft::kernels
