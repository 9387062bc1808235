// lines.hpp — the lines of a text file, one after the other, with their numbers and where they begin. One line is held at a time.
// A byte-order mark, CRLF, blank lines and a last line without an end are fine; a line beyond most_line_bytes is refused.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <weft/io/file.hpp>

namespace weft::io {
inline constexpr std::size_t most_line_bytes = std::size_t{32} << 20;

// Calls each(line without its end, line number[, byte where it begins]) for every line that is not blank.
template <class F> void for_each_line(path const& file, F const& each) {
  descriptor const fd = open_read(file);
  std::uint64_t const bytes = size_of(fd, file);
  std::string held, block(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1 << 20)), '\0');
  std::size_t number = 1;
  std::uint64_t begin = 0;  // of the line
  auto finish = [&](std::string_view line) {
    std::uint64_t const end = begin + line.size() + 1;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3), begin += 3;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) {
      if constexpr (std::invocable<F const&, std::string_view, std::size_t, std::uint64_t>) each(line, number, begin);
      else each(line, number);
    }
    ++number, begin = end;
  };
  for (std::uint64_t at = 0; at < bytes;) {
    std::size_t const take = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), bytes - at));
    read_at(fd, file, at, block.data(), take);
    at += take;
    std::string_view rest(block.data(), take);
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      if (held.empty()) {
        finish(rest.substr(0, end));
      } else {
        held += rest.substr(0, end);
        finish(held);
        held.clear();
      }
    }
    if (held.size() + rest.size() > most_line_bytes)
      refuse("{}:{}: the line is longer than {} bytes", file.string(), number, most_line_bytes);
    held += rest;
  }
  if (!held.empty()) finish(held);
}
}  // namespace weft::io
