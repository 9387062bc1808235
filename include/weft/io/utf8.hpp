// utf8.hpp — what is a character in UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weft::io {
// Bytes of the character that `text` begins with; 0: it begins with none.
inline std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xbf) { return byte(i) >= least && byte(i) <= most; };
  unsigned const lead = byte(0);
  if (text.empty()) return 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) return follows(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (lead >= 0xf0 && lead <= 0xf4)
    return follows(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}
// Bytes of the broken character that `text` begins with: what could be the beginning of one, at least a byte (WHATWG's replacement).
inline std::size_t utf8_broken(std::string_view text) {
  for (std::size_t begun = std::min<std::size_t>(text.size(), 3); begun > 1; --begun) {
    char whole[4] = {'\x80', '\x80', '\x80', '\x80'};
    std::copy_n(text.data(), begun, whole);
    if (utf8_length({whole, 4}) > begun) return begun;
  }
  return 1;
}
// Bytes at the beginning that are ASCII, eight at a time.
inline std::size_t ascii_length(std::string_view text) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
  }
  return at;
}
inline bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    auto const lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      std::size_t const plain = ascii_length(text.substr(at));
      at += plain > 0 ? plain : 1;
    } else if (std::uint32_t word = 0; lead >= 0xe1 && lead != 0xed && lead <= 0xef && at + 4 <= text.size() &&
                                       (std::memcpy(&word, text.data() + at, 4), (word & 0xc0c000u) == 0x808000u)) {
      at += 3;  // most of Chinese, Japanese, Korean, ...
    } else {
      std::size_t const bytes = utf8_length(text.substr(at));
      if (bytes == 0) return false;
      at += bytes;
    }
  }
  return true;
}
}  // namespace weft::io
