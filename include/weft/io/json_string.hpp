// json_string.hpp — a text as a JSON string. What is not UTF-8 becomes U+FFFD (one for each broken character, as Python and Rust do),
// so that what is written is always JSON.
#pragma once
#include <string>
#include <string_view>

#include <weft/io/utf8.hpp>

namespace weft::io {
inline void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    char const c = text[0];
    std::size_t const bytes = utf8_length(text);
    if (bytes == 0) out += "\xef\xbf\xbd";
    else if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c == '\n') out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20) (out += c < 0x10 ? "\\u000" : "\\u001") += "0123456789abcdef"[c & 15];
    else out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? utf8_broken(text) : bytes);
  }
  out += '"';
}
}  // namespace weft::io
