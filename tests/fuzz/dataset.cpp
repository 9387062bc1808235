// dataset.cpp — bytes as a file of rows: refused, or every id is in the vocabulary and every length within its limit.
#include <weft/io/dataset.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static weft::io::byte_tokenizer const words(weft::io::byte_tokenizer_json({"<|endoftext|>"}), "tokenizer.json");
  fuzz::file const file({reinterpret_cast<char const*>(data), size});
  for (bool supervised : {false, true}) {
    weft::io::dataset_options options;
    options.vocab = 257, options.max_prompt_length = 16, options.max_response_length = 16;
    options.supervised = supervised;
    options.truncate = weft::io::truncation::middle;
    fuzz::refused_or_good([&] {
      auto const rows = weft::io::read_dataset({&file.path(), 1}, options, &words);
      fuzz::demand(!rows.rows.empty() && rows.rows.size() + rows.filtered == rows.read);
      for (auto const& row : rows.rows) {
        fuzz::demand(!row.prompt.empty() && row.prompt.size() <= 16 && row.response.size() <= 16);
        for (auto const* ids : {&row.prompt, &row.response})
          for (weft::i32 id : *ids) fuzz::demand(id >= 0 && id < 257);
        weft::io::parse_json(row.extra, "extra");
      }
    });
  }
  return 0;
}
