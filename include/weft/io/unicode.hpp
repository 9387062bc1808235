// unicode.hpp — what the tokenizer needs of Unicode, by utf8proc: normalization form C (UAX 15), words and blanks at the edge of a text.
// Texts are UTF-8 and checked before.
#pragma once
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/io/utf8.hpp>

namespace weft::io {
namespace detail {
inline char32_t code_point(std::string_view text) {  // that the text begins with
  utf8proc_int32_t point = 0;
  utf8proc_iterate(reinterpret_cast<utf8proc_uint8_t const*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &point);
  return static_cast<char32_t>(point);
}
inline std::string_view last_character(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xc0) == 0x80) {}
  return text.substr(at);
}
inline bool is_blank(char32_t c) {  // the property White_Space
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
inline bool is_word(char32_t c) {  // UTS 18: alphabetic, mark, digit, connector, joiner
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  bool const circled =
      (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
  return circled || c == 0x200c || c == 0x200d;
}
}  // namespace detail

inline bool begins_with_word(std::string_view text) { return !text.empty() && detail::is_word(detail::code_point(text)); }
inline bool ends_with_word(std::string_view text) { return begins_with_word(detail::last_character(text)); }
inline std::size_t blanks_at_begin(std::string_view text) {  // bytes
  std::size_t bytes = 0;
  while (bytes < text.size() && detail::is_blank(detail::code_point(text.substr(bytes)))) bytes += utf8_length(text.substr(bytes));
  return bytes;
}
inline std::size_t blanks_at_end(std::string_view text) {  // bytes
  std::size_t const all = text.size();
  while (!text.empty() && detail::is_blank(detail::code_point(detail::last_character(text))))
    text.remove_suffix(detail::last_character(text).size());
  return all - text.size();
}

// Normalization form C. Stretches of characters that it leaves alone, whatever stands beside them, are copied.
class nfc {
 public:
  nfc() : inert_(points) {
    utf8proc_int32_t parts[32];
    std::vector<bool> second(points);  // composes with what stands before it
    for (utf8proc_int32_t c = 0; c < points; ++c) {
      utf8proc_ssize_t const n = decompose(c, parts, 32);
      for (utf8proc_ssize_t i = 1; i < n; ++i)
        if (parts[i] < points) second[static_cast<std::size_t>(parts[i])] = true;
      utf8proc_ssize_t const composed = n > 0 && n <= 32 ? utf8proc_normalize_utf32(parts, n, options) : 0;
      inert_[static_cast<std::size_t>(c)] = composed == 1 && parts[0] == c && utf8proc_get_property(c)->combining_class == 0;
    }
    for (std::size_t c = 0; c < second.size(); ++c)
      if (second[c]) inert_[c] = false;
    for (std::size_t lead = 0xe1; lead <= 0xef; ++lead) {  // of three bytes: 4,096 characters each
      auto const first = inert_.begin() + static_cast<std::ptrdiff_t>((lead & 0xf) << 12);
      inert_lead_[lead] = std::find(first, first + 4096, false) == first + 4096;
    }
  }
  // The text, or its normal form in `room`.
  std::string_view operator()(std::string_view text, std::string& room) const {
    std::size_t done = 0, before = 0;  // text up to `done` is in room; the character before `at` begins at `before`
    bool changed = false;
    for (std::size_t at = 0; at < text.size();) {
      if (std::size_t const plain = ascii_length(text.substr(at))) {
        before = at + plain - 1, at += plain;
        continue;
      }
      if (inert_lead_[static_cast<unsigned char>(text[at])]) {
        do before = at, at += 3;
        while (at < text.size() && inert_lead_[static_cast<unsigned char>(text[at])]);
        continue;
      }
      std::size_t const bytes = utf8_length(text.substr(at));
      if (bytes == 0) break;                                                                               // never: the text was checked
      if (static_cast<unsigned char>(text[at]) < 0xcc || is_inert(detail::code_point(text.substr(at)))) {  // below U+0300 all are
        before = at, at += bytes;
        continue;
      }
      if (!changed) room.clear();
      changed = true;
      room += text.substr(done, before - done);
      while (at < text.size() && !is_inert(detail::code_point(text.substr(at)))) at += utf8_length(text.substr(at));
      normalize(text.substr(before, at - before), room);
      done = before = at;
    }
    if (!changed) return text;
    room += text.substr(done);
    return room;
  }

 private:
  static constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  static constexpr utf8proc_int32_t points = 0x20000;  // above lie ideographs and little else: those take the long way
  std::vector<bool> inert_;                            // [points]
  std::array<bool, 256> inert_lead_{};                 // by first byte: all characters of three bytes that begin with it are

  bool is_inert(char32_t c) const { return c < inert_.size() && inert_[c]; }
  static utf8proc_ssize_t decompose(utf8proc_int32_t c, utf8proc_int32_t* to, utf8proc_ssize_t room) {
    int last = 0;
    return utf8proc_decompose_char(c, to, room, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &last);
  }
  static void normalize(std::string_view text, std::string& out) {
    std::vector<utf8proc_int32_t> points_of;
    for (; !text.empty(); text.remove_prefix(utf8_length(text))) {
      utf8proc_int32_t parts[32];
      utf8proc_ssize_t const n = decompose(static_cast<utf8proc_int32_t>(detail::code_point(text)), parts, 32);
      points_of.insert(points_of.end(), parts, parts + std::max<utf8proc_ssize_t>(n, 0));
    }
    auto combining = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
    for (auto from = points_of.begin(); from != points_of.end();) {  // canonical order of every run of marks
      auto const to = std::find_if(from, points_of.end(), [&](utf8proc_int32_t c) { return combining(c) == 0; });
      std::stable_sort(from, to, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return combining(a) < combining(b); });
      from = to == points_of.end() ? to : to + 1;
    }
    utf8proc_ssize_t const n = utf8proc_normalize_utf32(points_of.data(), static_cast<utf8proc_ssize_t>(points_of.size()), options);
    for (utf8proc_ssize_t i = 0; i < n; ++i) {
      utf8proc_uint8_t bytes[4];
      out.append(reinterpret_cast<char const*>(bytes),
                 static_cast<std::size_t>(utf8proc_encode_char(points_of[static_cast<std::size_t>(i)], bytes)));
    }
  }
};
}  // namespace weft::io
