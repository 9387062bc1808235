// bpe_tokenizer.cpp — a tokenizer.json with merges is refused, or encodes a text to ids that it knows, twice the same.
#include <weft/io/tokenizer.hpp>

#include "fuzz.hpp"

#ifdef WEFT_TOKENIZER
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    weft::io::bpe_tokenizer const words(weft::io::parse_json(text, "fuzz"), "fuzz");
    std::string_view part = text.substr(0, 200);
    while (!weft::io::is_utf8(part)) part.remove_suffix(1);
    auto const ids = words.encode(part);
    for (weft::i32 id : ids) fuzz::demand(id >= 0 && id < words.size());
    fuzz::demand(words.encode(part) == ids);
    words.decode(ids, true);
  });
}
#else
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const*, std::size_t) { return 0; }
#endif
