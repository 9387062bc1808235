// knob.hpp — one setting of a run: a dotted name, the field it fills, what it means, which values it takes.
// Text becomes a value here and nowhere else; an error names the key, the value, the expected type and the range.
#pragma once
#include <weft/io/error.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft::train {

struct knob {
  using field = std::variant<bool*, std::int64_t*, double*, std::array<double, 2>*, std::string*, std::vector<std::string>*>;
  std::string name;
  field to;
  std::string_view help;  // one line, with the unit
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool open = false;               // least itself is too small
  bool bytes = false;              // 141G, 512Mi
  std::string_view choices = {};   // of a string: "a|b|c"; empty: any
  std::string_view followed = {};  // the knob whose value this one takes while nobody sets it
  std::string before = {};         // the default, as text
  std::string origin = {};         // who set it: command line, a file; empty: nobody

  knob(std::string n, field f, std::string_view h) : name(std::move(n)), to(f), help(h) { before = text(); }
  knob& in(double low, double high = std::numeric_limits<double>::infinity()) { return least = low, most = high, *this; }
  knob& above(double low) { return open = true, least = low, *this; }
  knob& in_bytes() { return bytes = true, least = 0, *this; }
  knob& one_of(std::string_view c) { return choices = c, *this; }
  knob& follows(std::string_view other) { return followed = other, *this; }

  std::string text() const {
    return std::visit([](auto* p) { return shown(*p); }, to);
  }
  void take(knob const& other) {
    std::visit([&](auto* p) { *p = *std::get<decltype(p)>(other.to); }, to);
  }
  void parse(std::string_view value) {
    std::visit([&](auto* p) { read(trimmed(value), *p); }, to);
  }

  std::string expected() const {
    if (!choices.empty()) return fmt::format("one of {}", choices);
    char const* const kinds[] = {"true or false", bytes ? "a size in bytes such as 141G or 512Mi" : "a whole number",
                                 "a number",      "two numbers such as [0.9,0.999]",
                                 "a text",        "a list such as [a,b]"};
    std::string out = kinds[to.index()];
    bool const low = std::isfinite(least), high = std::isfinite(most);
    if (low) out += fmt::format(" {} {}", open ? "above" : high ? "from" : "of at least", least);
    if (high) out += fmt::format("{} {}", low && open ? ", at most" : low ? " to" : " of at most", most);
    return out;
  }

  static std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
    if (s.size() >= 2 && s.front() == s.back() && (s.front() == '"' || s.front() == '\'')) return s.substr(1, s.size() - 2);
    return s;
  }

 private:
  static bool is_null(std::string_view s) { return s == "null" || s == "None" || s == "~"; }
  [[noreturn]] void bad(std::string_view value) const { io::refuse("{}={}: expected {}", name, io::show(value), expected()); }
  void check(std::string_view text, double value) const {
    if (!(open ? value > least : value >= least) || !(value <= most)) bad(text);
  }

  static std::string shown(bool v) { return v ? "true" : "false"; }
  static std::string shown(std::int64_t v) { return fmt::format("{}", v); }
  static std::string shown(double v) { return fmt::format("{}", v); }
  static std::string shown(std::array<double, 2> const& v) { return fmt::format("[{}, {}]", v[0], v[1]); }
  static std::string shown(std::string const& v) { return v; }
  static std::string shown(std::vector<std::string> const& v) {
    std::string out;
    for (auto const& s : v) out += (out.empty() ? "" : ", ") + s;
    return "[" + out + "]";
  }

  void read(std::string_view s, bool& out) const {
    if (s == "true" || s == "True" || s == "1" || s == "yes" || s == "on") out = true;
    else if (s == "false" || s == "False" || s == "0" || s == "no" || s == "off") out = false;
    else bad(s);
  }
  void read(std::string_view s, std::int64_t& out) const {
    std::int64_t value = -1, unit = 1;  // null is -1 where -1 is allowed
    if (!is_null(s)) {
      auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
      std::string_view const rest(end, static_cast<std::size_t>(s.data() + s.size() - end));
      if (bytes && rest.size() >= 1) {
        auto const power = std::string_view("KMGT").find(rest[0]);
        if (power == std::string_view::npos || (rest != rest.substr(0, 1) && rest.substr(1) != "i")) bad(s);
        for (std::size_t i = 0; i <= power; ++i) unit *= rest.size() == 2 ? 1024 : 1000;
      } else if (!rest.empty()) bad(s);
      if (error != std::errc{} || value > std::numeric_limits<std::int64_t>::max() / unit) bad(s);
    }
    check(s, static_cast<double>(value));
    out = value * unit;
  }
  double number(std::string_view s) const {
    double value = -1;
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error != std::errc{} || end != s.data() + s.size() || !std::isfinite(value)) bad(s);
    return value;
  }
  void read(std::string_view s, double& out) const {
    double const value = is_null(s) ? -1 : number(s);
    check(s, value);
    out = value;
  }
  void read(std::string_view s, std::array<double, 2>& out) const {
    auto const parts = items(s);
    if (parts.size() != 2) bad(s);
    std::array<double, 2> const value{number(parts[0]), number(parts[1])};
    for (double v : value) check(s, v);
    out = value;
  }
  void read(std::string_view s, std::string& out) const {
    if (is_null(s)) s = {};
    if (!choices.empty() && !listed(s)) bad(s);
    out = s;
  }
  void read(std::string_view s, std::vector<std::string>& out) const {
    out.clear();
    if (!is_null(s)) out = items(s);
  }
  bool listed(std::string_view s) const {
    for (std::string_view rest = choices;;) {
      auto const bar = rest.find('|');
      if (rest.substr(0, bar) == s) return true;
      if (bar == std::string_view::npos) return false;
      rest.remove_prefix(bar + 1);
    }
  }
  static std::vector<std::string> items(std::string_view s) {
    if (s.size() >= 2 && s.front() == '[' && s.back() == ']') s = s.substr(1, s.size() - 2);
    std::vector<std::string> out;
    while (!trimmed(s).empty()) {
      auto const comma = s.find(',');
      out.emplace_back(trimmed(s.substr(0, comma)));
      s.remove_prefix(comma == std::string_view::npos ? s.size() : comma + 1);
    }
    return out;
  }
};

}  // namespace weft::train
