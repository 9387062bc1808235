// json_parse.hpp — parse_json() by nlohmann-json's event parser. That parser is iterative; what this handler builds is capped, so that
// neither building nor destroying it can run out of stack or take memory that the text does not justify.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>

#include <weft/io/json.hpp>

namespace weft::io {
namespace detail {
struct json_cursor {  // an iterator over the text that leaves a trace of how far the lexer has come
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = char const*;
  using reference = char const&;
  char const* at;
  char const** trace;
  reference operator*() const { return *at; }
  json_cursor& operator++() {
    *trace = ++at;
    return *this;
  }
  json_cursor operator++(int) {
    json_cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(json_cursor const& other) const { return at == other.at; }
  bool operator!=(json_cursor const& other) const { return at != other.at; }
};

struct json_builder {
  std::string_view text;
  std::string const& where;
  std::size_t line;
  json_limits const& limits;
  char const* reached = text.data();  // the lexer has read up to here
  json root = {};
  std::vector<json*> open = {};  // arrays and objects around the current value
  std::string name = {};         // of the next member
  std::size_t values = 0;

  template <class... A> [[noreturn]] void fail(fmt::format_string<A...> what, A&&... a) const {
    auto const lines = static_cast<std::size_t>(std::count(text.data(), std::max(text.data(), reached - 1), '\n'));
    refuse("{}:{}: {}", where, line + lines, fmt::format(what, std::forward<A>(a)...));
  }
  json* add(json value) {
    if (++values > limits.values) fail("more than {} JSON values", limits.values);
    if (open.empty()) return &(root = std::move(value));
    if (auto* items = open.back()->as_array()) return &items->emplace_back(std::move(value));
    return &open.back()->as_object()->emplace_back(std::move(name), std::move(value)).second;
  }
  bool start(json empty) {
    if (open.size() >= limits.depth) fail("JSON nested deeper than {}", limits.depth);
    open.push_back(add(std::move(empty)));
    return true;
  }
  bool null() { return add({}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, std::string const& digits) {
    if (!limits.huge_integers && digits.find_first_of(".eE") == std::string::npos)
      fail("the integer {} does not fit 64 bits", show(digits, 40));
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_array(std::size_t) { return start(json::array{}); }
  bool start_object(std::size_t) { return start(json::object{}); }
  bool key(std::string& value) {
    name = std::move(value);
    return true;
  }
  bool end_array() {
    open.pop_back();
    return true;
  }
  bool end_object() {
    auto const& members = *open.back()->as_object();
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (auto& [key_name, value] : members) keys.push_back(key_name);
    std::sort(keys.begin(), keys.end());
    auto const twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail("the key {} stands twice in one object", show(*twice));
    open.pop_back();
    return true;
  }
  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const& error) {
    std::string_view what = error.what();  // "[json.exception.name.id] parse error at line 1, column 2: what"
    auto const after = what.find(what.find(": ") == what.npos ? "] " : ": ");
    if (after != what.npos) what.remove_prefix(after + 2);
    fail("not valid JSON: {}", show(what, 200));
  }
};
}  // namespace detail

#ifndef WEFT_COMPILED
inline
#endif
    json
    parse_json(std::string_view text, std::string const& where, std::size_t line, json_limits const& limits) {
  if (text.size() > limits.bytes) refuse("{}:{}: {} bytes of JSON, more than the {} allowed here", where, line, text.size(), limits.bytes);
  detail::json_builder builder{text, where, line, limits};
  detail::json_cursor first{text.data(), &builder.reached}, last{text.data() + text.size(), &builder.reached};
  if (!nlohmann::json::sax_parse(first, last, &builder)) builder.fail("not valid JSON");
  return std::move(builder.root);
}
}  // namespace weft::io
