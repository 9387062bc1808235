// moments.hpp — how AdamW's two moments are kept: f32, bf16, or eight bits beside a scale for each block of 256.
//
// Eight bits are a small float of a block's largest magnitude, with 3 bits of fraction: the first moment a sign and 4 bits of exponent
// (down to 2^-17 of the largest), the second, which spans squares, 5 bits of exponent (down to 2^-33). bf16 and eight bits are rounded
// stochastically, because 1 - beta2 is below half a unit of either: up with the probability of the place between two neighbours.
#pragma once
#include <weft/element.hpp>

namespace weft::kernels {
enum class moment_format : i32 { f32, bf16, f8 };
inline constexpr size_t moment_block = 256;

struct moment_layout {  // bytes from the start
  size_t first = 0, second, first_scales, second_scales, end;
};
WEFT_HD constexpr moment_layout moment_layout_of(moment_format f, size_t n) {
  size_t const each = f == moment_format::f32    ? 4
                      : f == moment_format::bf16 ? 2
                                                 : 1,
               array = (n * each + 255) / 256 * 256,
               scales = f == moment_format::f8 ? ((n + moment_block - 1) / moment_block * sizeof(f32) + 255) / 256 * 256 : 0;
  return {0, array, 2 * array, 2 * array + scales, 2 * array + 2 * scales};
}

namespace detail {
WEFT_HD inline u32 bits_of(f32 x) {
  u32 b;
  __builtin_memcpy(&b, &x, sizeof b);
  return b;
}
WEFT_HD inline f32 float_of(u32 b) {
  f32 x;
  __builtin_memcpy(&x, &b, sizeof x);
  return x;
}
// A code of `exponents` bits of exponent e and 3 of fraction f: (1 + f/8) 2^(e - last), or f/8 2^(1 - last) for e = 0; 1 has e = last.
template <int exponents> inline constexpr int last_exponent = (1 << exponents) - 1;
template <int exponents> WEFT_HD inline f32 decoded(u32 code) {
  constexpr int last = last_exponent<exponents>;
  u32 const e = code >> 3, f = code & 7;
  return e ? float_of((e + 127 - last) << 23 | f << 20) : static_cast<f32>(f) * float_of(static_cast<u32>(127 - last + 1 - 3) << 23);
}
// x from 0 to 1; random: 16 bits
template <int exponents> WEFT_HD inline u32 encoded(f32 x, u32 random) {
  constexpr int last = last_exponent<exponents>;
  if (x >= float_of(static_cast<u32>(127 - last + 1) << 23))
    return ((bits_of(x) + (random << 4)) >> 20) - (static_cast<u32>(127 - last) << 3);
  return static_cast<u32>(x * float_of(static_cast<u32>(127 + last - 1 + 3) << 23) + static_cast<f32>(random) * 0x1p-16f);
}
// x to one of its two bf16 neighbours
WEFT_HD inline bf16 to_bf16_stochastic(f32 x, u32 random) {
  u32 const bits = bits_of(x);
  return {static_cast<std::uint16_t>((bits & 0x7f800000u) == 0x7f800000u ? bits >> 16 | ((bits & 0x7fffff) != 0) : (bits + random) >> 16)};
}
}  // namespace detail
}  // namespace weft::kernels
