// error.hpp — says what the outside world got wrong (input_error.hpp). Text that comes from a file passes through show().
#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include <weft/io/input_error.hpp>

namespace weft::io {
template <class... A> [[noreturn]] void refuse(fmt::format_string<A...> text, A&&... values) {
  throw input_error(fmt::format(text, std::forward<A>(values)...));
}

// Text of unknown origin, safe to print on one line of a terminal: cut to `most` bytes, everything but printable ASCII as \xNN.
inline std::string show(std::string_view text, std::size_t most = 120) {
  std::string out = "'";
  for (char c : text.substr(0, most)) {
    unsigned const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) out += c;
    else out += fmt::format("\\x{:02x}", byte);
  }
  return out + (text.size() > most ? "...'" : "'");
}
}  // namespace weft::io
