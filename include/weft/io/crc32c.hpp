// crc32c.hpp — the Castagnoli checksum (RFC 3720), by the processor's instruction where it has one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace weft::io {
namespace detail {
constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}
inline std::uint32_t crc32c_plain(std::uint32_t crc, unsigned char const* at, std::size_t bytes) {
  static constexpr auto table = crc32c_table();
  for (; bytes > 0; --bytes, ++at) crc = crc >> 8 ^ table[(crc ^ *at) & 255];
  return crc;
}
#if defined(__x86_64__)
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_sse42(std::uint32_t crc, unsigned char const* at, std::size_t bytes) {
  std::uint64_t wide = crc;
  for (std::uint64_t word; bytes >= 8; bytes -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; bytes > 0; --bytes, ++at) crc = _mm_crc32_u8(crc, *at);
  return crc;
}
#endif
}  // namespace detail

// Of `bytes` bytes, going on from the checksum of what came before them (0: nothing).
inline std::uint32_t crc32c(void const* data, std::size_t bytes, std::uint32_t before = 0) {
  auto* at = static_cast<unsigned char const*>(data);
#if defined(__x86_64__)
  static bool const fast = __builtin_cpu_supports("sse4.2");
  if (fast) return ~detail::crc32c_sse42(~before, at, bytes);
#endif
  return ~detail::crc32c_plain(~before, at, bytes);
}
}  // namespace weft::io
