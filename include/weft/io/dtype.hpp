// dtype.hpp — what one number in a safetensors file is, and the 16-bit floats to and from float.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <weft/element.hpp>

namespace weft::io {
static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and so are all files of weft");
using u64 = std::uint64_t;

// In the order of the reference implementation: rising alignment, which the writer sorts by.
enum class dtype {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};
struct dtype_facts {
  char const* name;
  u64 bits;
};
inline constexpr std::array<dtype_facts, 22> dtypes{
    {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
     {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64}, {"U64", 64}}};
constexpr char const* name_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].name; }
constexpr u64 bits_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].bits; }

inline float to_float(bf16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
inline bf16 to_bf16(float x) {  // to nearest, ties to even; NaN stays NaN
  auto const bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
struct f16 {
  std::uint16_t bits;
};  // IEEE binary16
inline float to_float(f16 x) {
  std::uint32_t const sign = std::uint32_t{x.bits} >> 15 << 31, rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  float const magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;  // moves the exponent's bias; denormals come out exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}
inline f16 to_f16(float x) {  // to nearest, ties to even; what is too large becomes infinity
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto const sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  std::uint32_t const rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (rest >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (rest < 0x38800000u) {  // a denormal of binary16, a multiple of 2^-24: the addition rounds
    float const rounded = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u))};
  }
  return {static_cast<std::uint16_t>(sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13)};
}
}  // namespace weft::io
