// encode.cpp — a text comes back from its ids, when nothing of the tokenizer changes texts; with all of it, the ids are the tokenizer's.
#include <weft/io/tokenizer.hpp>

#include "fuzz.hpp"

#ifdef WEFT_TOKENIZER
namespace {
using namespace weft::io;
json shipped(char const* form) {
  path const file = path(WEFT_TESTS) / "data/tokenizers" / form / "tokenizer.json";
  return parse_json(read_file(file, 1 << 20), file.string());
}
json faithful(char const* form) {  // without normalization, and without added tokens that take blanks along
  json root = shipped(form);
  root.set("normalizer", nullptr);
  json::array kept;
  for (json const& token : *root.find("added_tokens")->as_array())
    if (bool_or(token, "special", false, form)) kept.push_back(token);
  root.set("added_tokens", std::move(kept));
  return root;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static bpe_tokenizer const plain[] = {{faithful("pairs"), "pairs"}, {faithful("strings"), "strings"}};
  static bpe_tokenizer const whole[] = {{shipped("pairs"), "pairs"}, {shipped("strings"), "strings"}};
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    for (auto& words : plain) fuzz::demand(words.decode(words.encode(text)) == text);
    for (auto& words : whole) {
      auto const ids = words.encode(text);
      for (weft::i32 id : ids) fuzz::demand(id >= 0 && id < words.size());
      fuzz::demand(words.encode(text) == ids);
    }
  });
}
#else
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const*, std::size_t) { return 0; }
#endif
