// joints.hpp — which neighbouring characters of three or four bytes (Chinese, Japanese, Korean, Thai, ...) a token joins. Where none does, no merge
// crosses, so a text can be cut there: what is left are short words, which come again and again, in a script that puts no blanks between them.
// The answer is exact where it says no, and a yes that is wrong costs time only.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <weft/io/utf8.hpp>

namespace weft::io {
class joints {
 public:
  void add(std::string_view token) {  // every token that a merge makes
    for (std::size_t i = 1; i < token.size(); ++i) {
      if (byte(token, i) < 0xe0 || (byte(token, i - 1) & 0xc0) != 0x80) continue;  // no character of three bytes begins here, after another
      std::size_t before = i - 1;
      while (before > 0 && (byte(token, before) & 0xc0) == 0x80) --before;
      std::size_t const left = utf8_length(token.substr(before, i - before)), right = utf8_length(token.substr(i));
      if (left == i - before && right >= 3) bits_[place(character(token, before), character(token, i))] = true;
      else broken_[byte(token, i - 1) << 8 | byte(token, i)] = true;  // whatever the rest of the character is that the token lacks
    }
  }
  // Calls piece(bytes) for the parts between which no token stands. The word is UTF-8.
  template <class F> void cut(std::string_view word, F const& piece) const {
    std::size_t begin = 0;
    std::uint32_t before = 0;  // the character before, if it has three or four bytes
    for (std::size_t i = 0; i < word.size();) {
      unsigned const lead = byte(word, i);
      if (lead < 0xe0) {
        before = 0;
        i += lead < 0xc0 ? 1 : 2;
        continue;
      }
      std::uint32_t const here = character(word, i);
      if (before != 0 && !bits_[place(before, here)] && !broken_[byte(word, i - 1) << 8 | lead]) {
        piece(word.substr(begin, i - begin));
        begin = i;
      }
      before = here;
      i += lead < 0xf0 ? 3 : 4;
    }
    piece(word.substr(begin));
  }

 private:
  static constexpr int log_bits = 20;
  std::vector<bool> bits_ = std::vector<bool>(1 << log_bits),
                    broken_ = std::vector<bool>(1 << 16);  // by hash of both; by the bytes at the border

  static unsigned byte(std::string_view s, std::size_t i) { return static_cast<unsigned char>(s[i]); }
  static std::uint32_t character(std::string_view s, std::size_t at) {  // its bytes as a number
    std::uint32_t c = 0;
    std::memcpy(&c, s.data() + at, byte(s, at) < 0xf0 ? 3 : 4);
    return c;
  }
  static std::size_t place(std::uint32_t a, std::uint32_t b) {
    std::uint64_t const both = (static_cast<std::uint64_t>(a) << 32 | b) * 0x9e3779b97f4a7c15u;
    return (both ^ both >> 32) * 0xbf58476d1ce4e5b9u >> (64 - log_bits);
  }
};
}  // namespace weft::io
