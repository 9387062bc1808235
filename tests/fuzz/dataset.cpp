// dataset.cpp — bytes as a file of rows: refused, or every id is in the vocabulary and every length within its limit.
#include <weft/io/dataset.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static auto const words = [] {
    weft::io::byte_tokenizer made(weft::io::byte_tokenizer_json({"<|im_end|>"}), "tokenizer.json");
    made.set_eos({256});
    made.set_chat(
        {"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
         "", "template"});
    return made;
  }();
  fuzz::file const file({reinterpret_cast<char const*>(data), size});
  for (auto kind : {weft::io::row_kind::prompt, weft::io::row_kind::supervised, weft::io::row_kind::pair}) {
    weft::io::dataset_options options;
    options.vocab = 257, options.max_prompt_length = 16, options.max_response_length = 16;
    options.kind = kind;
    options.truncate = weft::io::truncation::middle;
    fuzz::refused_or_good([&] {
      weft::io::dataset const rows({&file.path(), 1}, options, &words);
      fuzz::demand(rows.size() > 0 && rows.size() + rows.counted().filtered == rows.counted().read);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const row = rows.row(i);
        fuzz::demand(!row.prompt.empty() && row.response.empty() == (kind == weft::io::row_kind::prompt));
        for (auto const* ids : {&row.prompt, &row.response, &row.rejected}) {
          fuzz::demand(ids->size() <= 16);
          for (weft::i32 id : *ids) fuzz::demand(id >= 0 && id < 257);
        }
        weft::io::parse_json(row.extra, "extra");
      }
    });
  }
  return 0;
}
