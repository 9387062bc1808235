// answer_text.hpp — the answer within a response, and when two answers are the same. Every function takes time linear in the text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

namespace weft::train {
inline std::string_view trimmed(std::string_view s) {
  std::size_t const first = s.find_first_not_of(" \t\r\n");
  return first == s.npos ? std::string_view{} : s.substr(first, s.find_last_not_of(" \t\r\n") + 1 - first);
}
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// GSM8K: the last number after "#### " within the last 300 characters, without commas and $; nothing if there is none. As verl's strict method.
inline std::optional<std::string> last_hash_number(std::string_view text) {
  std::size_t begin = text.size();
  for (int characters = 0; begin > 0 && characters < 300; ++characters) do
      --begin;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80);
  text.remove_prefix(begin);
  for (std::size_t at = text.rfind("#### "); at != text.npos; at = at == 0 ? text.npos : text.rfind("#### ", at - 1)) {
    std::string number;
    std::size_t i = at + 5;
    auto skip = [&](char c) { return i < text.size() && text[i] == c && ++i; };
    skip('$');
    if (skip('-')) number = "-", skip('$');
    for (; i < text.size() && (is_digit(text[i]) || text[i] == '.' || text[i] == ','); ++i)
      if (text[i] != ',') number += text[i];
    if (std::any_of(number.begin(), number.end(), is_digit)) return number;
  }
  return std::nullopt;
}

// What the last \boxed{...} (or else \fbox{...}) holds, braces within it balanced; or "\boxed 5" up to the end of the formula or line.
inline std::optional<std::string_view> last_boxed(std::string_view text) {
  std::size_t at = text.rfind("\\boxed");
  std::size_t const name = at == text.npos ? 5 : 6;
  if (at == text.npos) at = text.rfind("\\fbox");
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + name);
  std::size_t const open = text.find_first_not_of(' ');
  if (open == text.npos) return std::nullopt;
  if (text[open] != '{') return open == 0 ? std::nullopt : std::optional(trimmed(text.substr(0, text.find_first_of("$\n"))));
  std::size_t depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;  // \{ and \} are no braces
    else if (text[i] == '{') ++depth;
    else if (text[i] == '}' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return std::nullopt;
}

namespace detail {
inline void replace_all(std::string& s, std::string_view what, std::string_view with) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at; (at = s.find(what, from)) != s.npos; from = at + what.size()) out.append(s, from, at - from).append(with);
  if (from > 0) s = std::move(out.append(s, from));
}
// An argument of a macro without braces gets them: \frac12 is \frac{1}{2}, \sqrt3 is \sqrt{3}.
inline std::string braced(std::string_view s, std::string_view macro, int arguments) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    if (!s.substr(i).starts_with(macro)) {
      out += s[i++];
      continue;
    }
    out += macro, i += macro.size();
    for (int a = 0; a < arguments && i < s.size() && (is_digit(s[i]) || (s[i] >= 'a' && s[i] <= 'z')); ++a)
      (out += '{') += s[i++], out += '}';
  }
  return out;
}
}  // namespace detail

// One spelling for what MATH's answers mean the same by (the rules of its published checker): no blanks, \left, \right, degrees, dollars,
// percent signs, units in \text, "x="; dfrac and tfrac are frac; macros have their braces.
inline std::string plain_math(std::string_view text) {
  std::string s(trimmed(text));
  for (auto const& [what, with] : {std::pair("\n", ""),
                                   {"\\!", ""},
                                   {"\\,", ""},
                                   {"\\\\", "\\"},
                                   {"tfrac", "frac"},
                                   {"dfrac", "frac"},
                                   {"\\left", ""},
                                   {"\\right", ""},
                                   {"^{\\circ}", ""},
                                   {"^\\circ", ""},
                                   {"\\$", ""},
                                   {"$", ""},
                                   {"\\%", ""},
                                   {"%", ""},
                                   {"\u2212", "-"}})
    detail::replace_all(s, what, with);
  if (std::size_t const unit = s.find("\\text{ "); unit != s.npos && unit > 0) s.resize(unit);
  if (std::size_t const equals = s.find('='); equals != s.npos && equals == s.rfind('=') && trimmed(s.substr(0, equals)).size() <= 2)
    s.erase(0, equals + 1);
  s.erase(std::remove(s.begin(), s.end(), ' '), s.end());
  s = detail::braced(detail::braced(s, "\\sqrt", 1), "\\frac", 2);
  detail::replace_all(s, "{.", "{0.");
  if (s.starts_with('.')) s.insert(0, 1, '0');
  while (s.ends_with('.')) s.pop_back();
  return s;
}

struct rational {  // in lowest terms, the denominator above 0
  std::int64_t above, below;
  bool operator==(rational const&) const = default;
};
// 12, -1,234.50, 3/4, \frac{3}{4} of up to 18 digits; nothing for what is no number, or is longer.
inline std::optional<rational> number_in(std::string_view s) {
  auto const decimal = [](std::string_view d) -> std::optional<rational> {
    bool const negative = d.starts_with('-');
    if (negative || d.starts_with('+')) d.remove_prefix(1);
    std::size_t const point = std::min(d.find('.'), d.size()), first = d.substr(0, point).find(',');
    rational r{0, 1};
    int digits = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      bool const due = first < point && i >= first && i < point && (i - first) % 4 == 0;  // commas stand before every three digits
      if (due != (d[i] == ',') || (d[i] == ',' && (first == 0 || first > 3 || point - i < 4))) return std::nullopt;
      if (due || i == point) continue;
      if (!is_digit(d[i]) || ++digits > 18) return std::nullopt;
      r.above = 10 * r.above + (d[i] - '0');
      if (i > point) r.below *= 10;
    }
    if (digits == 0) return std::nullopt;
    if (negative) r.above = -r.above;
    return r;
  };
  auto const lowest = [](std::optional<rational> r) {
    if (std::int64_t const g = r ? std::gcd(r->above, r->below) : 0) r->above /= g, r->below /= g;
    return r;
  };
  auto const ratio = [&](std::string_view above, std::string_view below) -> std::optional<rational> {
    auto const a = decimal(above), b = decimal(below);
    if (!a || !b || a->below != 1 || b->below != 1 || b->above == 0) return std::nullopt;
    return lowest(rational{b->above < 0 ? -a->above : a->above, b->above < 0 ? -b->above : b->above});
  };
  bool const negative = s.starts_with("-\\frac");
  if (std::string_view f = negative ? s.substr(1) : s; f.starts_with("\\frac{") && f.ends_with('}')) {
    f = f.substr(6, f.size() - 7);
    std::size_t const middle = f.find("}{");
    auto r = middle == f.npos ? std::nullopt : ratio(f.substr(0, middle), f.substr(middle + 2));
    if (r && negative) r->above = -r->above;
    return r;
  }
  std::size_t const slash = s.find('/');
  return slash == s.npos ? lowest(decimal(s)) : ratio(s.substr(0, slash), s.substr(slash + 1));
}

// The same spelling, or the same number.
inline bool same_answer(std::string_view a, std::string_view b) {
  std::string const x = plain_math(a), y = plain_math(b);
  if (x == y) return true;
  auto const n = number_in(x), m = number_in(y);
  return n && m && *n == *m;
}
}  // namespace weft::train
