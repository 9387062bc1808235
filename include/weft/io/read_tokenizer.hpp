// read_tokenizer.hpp — read_tokenizer(): which tokenizer a folder holds, its end-of-text token and its chat template.
// A program of several files defines WEFT_COMPILED and compiles this in one of them.
#pragma once
#include <weft/io/tokenizer.hpp>
#ifdef WEFT_TOKENIZER
#include <weft/io/bpe_tokenizer.hpp>
#endif

namespace weft::io {
namespace detail {
inline std::unique_ptr<tokenizer> make_bpe_tokenizer(json const& root, std::string const& where);  // bpe_tokenizer.hpp
inline std::unique_ptr<tokenizer> make_tokenizer(json const& root, std::string const& where) {
  json const& model = root.at("model", where);
  json const* merges = model.find("merges");
  bool const plain = (absent(merges) || (merges->as_array() && merges->as_array()->empty())) && absent(root.find("normalizer")) &&
                     !bool_or(model, "ignore_merges", false, where);
  if (plain) return std::make_unique<byte_tokenizer>(root, where);
#ifdef WEFT_TOKENIZER
  return make_bpe_tokenizer(root, where);
#else
  refuse("{}: this tokenizer has merges, which needs PCRE2 and utf8proc (Debian: libpcre2-dev, libutf8proc-dev); install them and build "
         "again, or give prompts as token ids (prompt_ids)",
         where);
#endif
}
inline std::string token_text(json const& about, char const* key, std::string const& where) {  // a text, or an object with content
  json const* token = about.find(key);
  if (absent(token)) return {};
  return token->as_string() ? *token->as_string() : string_or(*token, "content", "", where);
}
inline i32 id_of_token(tokenizer const& words, std::string_view text) {  // -1: none; special ones go first
  i32 found = -1;
  for (i32 id = words.size(); id-- > 0;)
    if (words.bytes_of(id) == text && (found < 0 || words.is_special(id) || !words.is_special(found))) found = id;
  return found;
}
inline std::string chat_template_text(path const& folder, json const& about, std::string const& where) {  // empty: none
  if (path const file = folder / "chat_template.jinja"; std::filesystem::exists(file)) return read_file(file, 1 << 20);
  json const* stated = about.find("chat_template");
  if (absent(stated)) return {};
  if (stated->as_string()) return *stated->as_string();
  if (stated->as_array())  // several by name
    for (json const& one : *stated->as_array())
      if (string_or(one, "name", "", where) == "default") return string_or(one, "template", "", where);
  return {};
}
}  // namespace detail

#ifndef WEFT_COMPILED
inline
#endif
    std::unique_ptr<tokenizer>
    read_tokenizer(path const& folder) {
  path const file = folder / "tokenizer.json", about_file = folder / "tokenizer_config.json";
  auto read = [](path const& from) {  // model_max_length of a model without limit is 1e30, written out
    return parse_json(read_file(from, 64 << 20), from.string(), 1, {.huge_integers = true});
  };
  auto made = detail::make_tokenizer(read(file), file.string());
  json const about = std::filesystem::exists(about_file) ? read(about_file) : json(json::object{});
  std::string const where = about_file.string();
  if (std::string const eos = detail::token_text(about, "eos_token", where); !eos.empty()) {
    i32 const id = detail::id_of_token(*made, eos);
    if (id < 0) refuse("{}: eos_token {} is not an added token of tokenizer.json", where, show(eos, 60));
    made->set_eos({id});
  }
  if (std::string const text = detail::chat_template_text(folder, about, where); !text.empty())
    made->set_chat(chat_template(text, detail::token_text(about, "bos_token", where), folder.string()));
  return made;
}
}  // namespace weft::io
