// tokenizer.cpp — a tokenizer.json that is taken gives every text back.
#include <weft/io/tokenizer.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    weft::io::byte_tokenizer const words(weft::io::parse_json(text, "fuzz"), "fuzz");
    auto const ids = words.encode(text);
    fuzz::demand(words.decode(ids) == text);
    for (weft::i32 id : ids) fuzz::demand(id >= 0 && id < words.size());
  });
}
