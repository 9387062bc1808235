// json.hpp — a JSON value, and the one way to read JSON text from outside: capped in depth, size and number of values; duplicate
// keys, invalid UTF-8 and numbers that would lose digits are refused with file and line. Reading is nlohmann-json's lexer and parser
// (json_parse.hpp), which is dear to compile: define WEFT_COMPILED and compile json_parse.hpp in one file of the program to pay once.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <weft/io/error.hpp>
#include <weft/io/json_string.hpp>

namespace weft::io {
class json {
 public:
  using array = std::vector<json>;
  using member = std::pair<std::string, json>;
  using object = std::vector<member>;  // in the order of the text; keys are unique

  json() = default;
  json(std::nullptr_t) {}
  json(std::same_as<bool> auto value) : value_(value) {}  // no pointer turns into a bool
  json(int value) : value_(std::int64_t{value}) {}
  json(std::int64_t value) : value_(value) {}
  json(std::uint64_t value) : value_(value) {}
  json(double value) : value_(value) {}
  json(char const* value) : value_(std::string(value)) {}
  json(std::string_view value) : value_(std::string(value)) {}
  json(std::string value) : value_(std::move(value)) {}
  json(array value) : value_(std::move(value)) {}
  json(object value) : value_(std::move(value)) {}

  bool is_null() const { return value_.index() == 0; }
  bool const* as_bool() const { return std::get_if<bool>(&value_); }  // as_*: null when it is something else
  std::string const* as_string() const { return std::get_if<std::string>(&value_); }
  array const* as_array() const { return std::get_if<array>(&value_); }
  object const* as_object() const { return std::get_if<object>(&value_); }
  object* as_object() { return std::get_if<object>(&value_); }
  array* as_array() { return std::get_if<array>(&value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<std::uint64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool in_range(std::int64_t least, std::int64_t most) const {  // an integer, and one of these
    if (auto* i = std::get_if<std::int64_t>(&value_)) return *i >= least && *i <= most;
    if (auto* u = std::get_if<std::uint64_t>(&value_))
      return most >= 0 && *u <= static_cast<std::uint64_t>(most) && least <= static_cast<std::int64_t>(*u);
    return false;
  }
  std::int64_t to_int() const {  // for what in_range() said yes to
    auto* u = std::get_if<std::uint64_t>(&value_);
    return u ? static_cast<std::int64_t>(*u) : std::get<std::int64_t>(value_);
  }
  std::uint64_t to_unsigned() const {
    auto* u = std::get_if<std::uint64_t>(&value_);
    return u ? *u : static_cast<std::uint64_t>(std::get<std::int64_t>(value_));
  }
  double to_double() const {  // for what is_number()
    if (auto* d = std::get_if<double>(&value_)) return *d;
    if (auto* u = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*u);
    return static_cast<double>(std::get<std::int64_t>(value_));
  }
  json const* find(std::string_view key) const {  // null: not an object, or no such member
    if (auto* members = as_object())
      for (auto& [name, value] : *members)
        if (name == key) return &value;
    return nullptr;
  }
  json const& at(std::string_view key, std::string const& where) const {
    json const* value = find(key);
    if (!value) refuse("{}: {} is missing", where, key);
    return *value;
  }
  void set(std::string_view key, json value) {  // replaces a member or appends it
    if (!as_object()) value_ = object{};
    for (auto& [name, old] : *as_object())
      if (name == key) return void(old = std::move(value));
    as_object()->emplace_back(std::string(key), std::move(value));
  }
  std::string dump(int indent = -1) const {  // -1: one line; else that many blanks a level, as Python's json.dumps(indent=...) does
    std::string out;
    write(out, indent, 0);
    return out;
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, array, object> value_;

  template <class Items, class Each>
  static void write_list(std::string& out, char const* brackets, Items const& items, int indent, int level, Each each) {
    out += brackets[0];
    bool first = true;
    auto line = [&](int deep) {
      if (indent >= 0 && !items.empty()) out += '\n', out.append(static_cast<std::size_t>(indent * deep), ' ');
    };
    for (auto& item : items) {
      if (!first) out += ',';
      first = false;
      line(level + 1);
      each(item);
    }
    line(level);
    out += brackets[1];
  }
  void write(std::string& out, int indent, int level) const {
    if (is_null()) out += "null";
    else if (auto* b = as_bool()) out += *b ? "true" : "false";
    else if (auto* i = std::get_if<std::int64_t>(&value_)) out += fmt::format("{}", *i);
    else if (auto* u = std::get_if<std::uint64_t>(&value_)) out += fmt::format("{}", *u);
    else if (auto* d = std::get_if<double>(&value_)) {
      std::string digits = fmt::format("{}", *d);  // the shortest text that reads back as the same number
      if (digits.find_first_not_of("-0123456789") == std::string::npos) digits += ".0";  // a real stays a real
      out += *d - *d == 0 ? digits : "null";                                             // JSON has no infinity
    } else if (auto* s = as_string()) append_json_string(out, *s);
    else if (auto* a = as_array()) write_list(out, "[]", *a, indent, level, [&](json const& v) { v.write(out, indent, level + 1); });
    else
      write_list(out, "{}", *as_object(), indent, level, [&](member const& m) {
        append_json_string(out, m.first);
        out += indent >= 0 ? ": " : ":";
        m.second.write(out, indent, level + 1);
      });
  }
};

struct json_limits {
  std::size_t depth = 64, bytes = std::size_t{64} << 20, values = 4'000'000;
  bool huge_integers = false;  // those beyond 64 bits are read as reals, not refused
};

#ifdef WEFT_COMPILED
// Throws input_error "where:line: what is wrong". `line` is the number of the text's first line.
json parse_json(std::string_view text, std::string const& where, std::size_t line = 1, json_limits const& limits = {});
#else
inline json parse_json(std::string_view text, std::string const& where, std::size_t line = 1, json_limits const& limits = {});
#endif

// Members of an object with their limits: each refuses by file, key and value. A missing or null member gives `otherwise`.
inline std::int64_t integer_of(json const& from, std::string_view key, std::int64_t least, std::int64_t most, std::string const& where) {
  json const* value = from.find(key);
  if (!value) refuse("{}: {} is missing; it must be an integer from {} to {}", where, key, least, most);
  if (!value->in_range(least, most))
    refuse("{}: {} is {}; it must be an integer from {} to {}", where, key, show(value->dump(), 60), least, most);
  return value->to_int();
}
inline std::int64_t integer_or(json const& from, std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most,
                               std::string const& where) {
  json const* value = from.find(key);
  return value && !value->is_null() ? integer_of(from, key, least, most, where) : otherwise;
}
inline double number_or(json const& from, std::string_view key, double otherwise, double least, double most, std::string const& where) {
  json const* value = from.find(key);
  if (!value || value->is_null()) return otherwise;
  if (!value->is_number() || !(value->to_double() >= least && value->to_double() <= most))
    refuse("{}: {} is {}; it must be a number from {} to {}", where, key, show(value->dump(), 60), least, most);
  return value->to_double();
}
inline bool bool_or(json const& from, std::string_view key, bool otherwise, std::string const& where) {
  json const* value = from.find(key);
  if (!value || value->is_null()) return otherwise;
  if (!value->as_bool()) refuse("{}: {} is {}; it must be true or false", where, key, show(value->dump(), 60));
  return *value->as_bool();
}
inline std::string string_or(json const& from, std::string_view key, std::string_view otherwise, std::string const& where) {
  json const* value = from.find(key);
  if (!value || value->is_null()) return std::string(otherwise);
  if (!value->as_string()) refuse("{}: {} is {}; it must be a string", where, key, show(value->dump(), 60));
  return *value->as_string();
}
}  // namespace weft::io

#ifndef WEFT_COMPILED
#include <weft/io/json_parse.hpp>
#endif
