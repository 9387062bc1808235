// byte_symbols.hpp — tokenizer.json writes tokens with a printable character for every byte (GPT-2's map).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <weft/element.hpp>

namespace weft::io::detail {
// Byte-level BPE writes a byte as a printable character: itself, or the next free one from U+0100 on.
inline std::array<unsigned, 256> byte_symbols() {
  std::array<unsigned, 256> symbols;
  unsigned next = 256;
  for (unsigned b = 0; b < 256; ++b) symbols[b] = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++;
  return symbols;
}
inline std::string utf8_of(unsigned symbol) {  // below U+0800
  if (symbol < 0x80) return std::string(1, static_cast<char>(symbol));
  return {static_cast<char>(0xc0 | symbol >> 6), static_cast<char>(0x80 | (symbol & 0x3f))};
}
inline std::optional<std::string> bytes_of_symbols(std::string_view token) {  // nothing: not all of it are symbols of bytes
  static auto const byte_of = [] {
    std::array<i32, 512> bytes;
    bytes.fill(-1);
    auto const symbols = byte_symbols();
    for (std::size_t b = 0; b < 256; ++b) bytes[symbols[b]] = static_cast<i32>(b);
    return bytes;
  }();
  std::string bytes;
  for (std::size_t i = 0; i < token.size(); ++i) {
    unsigned symbol = static_cast<unsigned char>(token[i]);
    if (symbol >= 0x80) {
      if (symbol > 0xc7 || i + 1 == token.size()) return std::nullopt;
      symbol = (symbol & 0x1f) << 6 | (static_cast<unsigned char>(token[++i]) & 0x3f);
    }
    if (byte_of[symbol] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of[symbol]);
  }
  return bytes;
}
}  // namespace weft::io::detail
