// json.cpp — what is read and written is read and written again as the same text.
#include <weft/io/json.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    auto const root = weft::io::parse_json(text, "fuzz");
    for (int indent : {-1, 2}) fuzz::demand(weft::io::parse_json(root.dump(indent), "again").dump() == root.dump());
  });
}
