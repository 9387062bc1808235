// joints.hpp — which neighbouring characters of three or four bytes (Chinese, Japanese, Korean, Thai, ...) a token joins. Where none does, no merge
// crosses, so a text can be cut there: what is left are short words, which come again and again, in a script that puts no blanks between them.
// The answer is exact where it says no, and a yes that is wrong costs time only.
#pragma once
#include <cstdint>
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
      bool const whole_left = left == i - before, whole_right = right >= 3;
      if (whole_left && whole_right) {
        bits_[place(character(token, before), character(token, i))] = true;
      } else {  // whatever the rest of the character is that the token lacks
        broken_[byte(token, i - 1) << 8 | byte(token, i)] = true;
        std::uint32_t const a = whole_left ? character(token, before) : byte(token, i - 1),
                            b = whole_right ? character(token, i) : byte(token, i);
        (whole_left ? lacks_right_ : whole_right ? lacks_left_ : lacks_both_)[place(a, b)] = true;
      }
    }
  }
  // Calls piece(bytes, whole) for the parts between which no token stands. whole: a token that reaches over a border inside the part holds
  // the characters on both sides of it entirely. The word is UTF-8.
  template <class F> void cut(std::string_view word, F const& piece) const {
    constexpr std::size_t most = 64;
    std::uint32_t at[most];     // where characters begin
    std::uint8_t border[most];  // in front of them: first all, then the parts, so that looks into the table do not wait for one another
    std::size_t begin = 0;
    std::uint32_t before = 0;  // the character before, if it has three or four bytes
    bool whole = !word.empty() && byte(word, 0) >= 0xe0;
    for (std::size_t i = 0; i < word.size();) {
      std::size_t n = 0;
      for (; n < most && i < word.size(); ++n) {
        unsigned const lead = byte(word, i);
        std::uint32_t const here = lead < 0xe0 ? 0 : character(word, i);
        at[n] = static_cast<std::uint32_t>(i);
        border[n] = before == 0 || here == 0                                                                 ? part_lacks
                    : broken_[byte(word, i - 1) << 8 | lead] && lacks(before, byte(word, i - 1), here, lead) ? part_lacks
                    : bits_[place(before, here)]                                                             ? joined
                                                                                                             : free;
        before = here;
        i += lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      }
      for (std::size_t k = at[0] == 0 ? 1 : 0; k < n; ++k)
        if (border[k] == free) {
          piece(word.substr(begin, at[k] - begin), whole);
          begin = at[k], whole = true;
        } else if (border[k] == part_lacks) {
          whole = false;
        }
    }
    piece(word.substr(begin), whole);
  }

 private:
  static constexpr int log_bits = 20;
  enum : std::uint8_t { free, joined, part_lacks };
  // By hash of both sides of the border, each a character or, where the token lacks a part of it, the byte next to the border.
  std::vector<bool> bits_ = std::vector<bool>(1 << log_bits), lacks_left_ = bits_, lacks_right_ = bits_, lacks_both_ = bits_;
  std::vector<bool> broken_ = std::vector<bool>(1 << 16);  // a part is lacking, by the bytes at the border: mostly it is not

  bool lacks(std::uint32_t before, unsigned last, std::uint32_t here, unsigned lead) const {
    return lacks_right_[place(before, lead)] || lacks_left_[place(last, here)] || lacks_both_[place(last, lead)];
  }
  static unsigned byte(std::string_view s, std::size_t i) { return static_cast<unsigned char>(s[i]); }
  static std::uint32_t character(std::string_view s, std::size_t at) {  // its bytes as a number
    std::uint32_t c = byte(s, at) | byte(s, at + 1) << 8 | byte(s, at + 2) << 16;
    if (byte(s, at) >= 0xf0) c |= byte(s, at + 3) << 24;
    return c;
  }
  static std::size_t place(std::uint32_t a, std::uint32_t b) { return (a * 0x9e3779b1u + b * 0x85ebca77u) >> (32 - log_bits); }
};
}  // namespace weft::io
