// tokenizer.hpp — text to token ids and back. Ids are the truth: decode(encode(text)) is text, but ids that a model sampled may not
// come back from their text, so nothing here or elsewhere encodes a response again.
// Special tokens written out in a text become their ids, the longest first, as Hugging Face does.
// read_tokenizer() reads a folder's tokenizer.json: byte-level BPE. Without merges (a token is a byte, or an added token) nothing else is
// needed; with merges it takes PCRE2 and utf8proc (bpe_tokenizer.hpp), which WEFT_TOKENIZER says are there.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/element.hpp>
#include <weft/io/byte_symbols.hpp>
#include <weft/io/chat_template.hpp>
#include <weft/io/file.hpp>
#include <weft/io/json.hpp>

namespace weft::io {
class tokenizer {
 public:
  virtual ~tokenizer() = default;
  virtual void encode(std::string_view text, std::vector<i32>& ids /*appended*/) const = 0;
  virtual std::string_view bytes_of(i32 id) const = 0;  // special tokens by their text; empty for an id that stands for nothing
  virtual bool is_special(i32 id) const = 0;
  virtual i32 size() const = 0;  // one more than the largest id; may be below the model's vocabulary
  // Messages as one text, by the folder's chat template; nothing when it has none. A template that is not known is refused.
  virtual std::optional<std::string> render(json const& messages, chat_options const& how) const {
    return chat_ ? std::optional(chat_->render(messages, how)) : std::nullopt;
  }

  std::vector<i32> encode(std::string_view text) const {
    std::vector<i32> ids;
    encode(text, ids);
    return ids;
  }
  std::string decode(std::span<i32 const> ids, bool skip_special = false) const {  // bytes: not every sequence of ids is UTF-8
    std::string text;
    for (i32 id : ids)
      if (!skip_special || !is_special(id)) text += bytes_of(id);
    return text;
  }
  std::vector<i32> const& eos_ids() const { return eos_ids_; }
  // What Hugging Face puts around a text that is no chat (Llama 3: <|begin_of_text|> before); encode() leaves it out.
  std::vector<i32> const& begin_ids() const { return begin_ids_; }
  std::vector<i32> const& end_ids() const { return end_ids_; }
  void set_eos(std::vector<i32> ids) { eos_ids_ = std::move(ids); }
  void set_chat(chat_template chat) { chat_ = std::move(chat); }

 protected:
  std::vector<i32> eos_ids_, begin_ids_, end_ids_;
  std::optional<chat_template> chat_;
};

namespace detail {
inline bool absent(json const* value) { return !value || value->is_null(); }
inline bool has_type(json const* value, std::string_view type, std::string const& where) {
  return value && string_or(*value, "type", "", where) == type;
}
// The parts of tokenizer.json that every byte-level tokenizer has alike.
inline void check_around(json const& root, std::string const& where) {
  json const& model = root.at("model", where);
  for (char const* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!string_or(model, key, "", where).empty()) refuse("{}: model.{} is not empty, which is not supported", where, key);
  if (!has_type(root.find("decoder"), "ByteLevel", where)) refuse("{}: decoder must be ByteLevel", where);
  for (char const* key : {"truncation", "padding"})
    if (!absent(root.find(key))) refuse("{}: {} is not null, which is not supported", where, key);
}
}  // namespace detail

class byte_tokenizer : public tokenizer {
 public:
  using tokenizer::encode;
  byte_tokenizer(json const& root, std::string const& where) {
    constexpr char const* advice = "; give prompts as token ids (prompt_ids)";
    using detail::absent, detail::has_type;
    json const& bpe = root.at("model", where);
    if (!has_type(&bpe, "BPE", where))
      refuse("{}: model type {} is not supported, only byte-level BPE{}", where, show(string_or(bpe, "type", "none", where), 40), advice);
    if (json const* merges = bpe.find("merges"); merges && (!merges->as_array() || !merges->as_array()->empty()))
      refuse("{}: model.merges is not empty; only tokenizers of single bytes are supported{}", where, advice);
    if (!absent(root.find("normalizer"))) refuse("{}: normalizer is not null, which is not supported{}", where, advice);
    json const *before = root.find("pre_tokenizer"), *after = root.find("post_processor");
    if (!has_type(before, "ByteLevel", where) || bool_or(*before, "add_prefix_space", true, where))
      refuse("{}: pre_tokenizer must be ByteLevel with add_prefix_space false{}", where, advice);
    if (!absent(after) && !has_type(after, "ByteLevel", where)) refuse("{}: post_processor must be null or ByteLevel{}", where, advice);
    detail::check_around(root, where);

    if (json const* added = root.find("added_tokens"); !absent(added)) {
      if (!added->as_array()) refuse("{}: added_tokens must be a list", where);
      for (json const& token : *added->as_array()) add_special(token, where);
    }
    json const& vocab = bpe.at("vocab", where);
    if (!vocab.as_object()) refuse("{}: model.vocab must be an object", where);
    read_bytes(*vocab.as_object(), where);
    std::sort(specials_.begin(), specials_.end(), [&](i32 a, i32 b) { return bytes_of(a).size() > bytes_of(b).size(); });
    for (i32 id : specials_) begins_special_[static_cast<unsigned char>(bytes_of(id)[0])] = true;
  }
  void encode(std::string_view text, std::vector<i32>& ids) const override {
    while (!text.empty()) {
      auto const byte = static_cast<unsigned char>(text[0]);
      i32 id = ids_[byte];
      std::size_t length = 1;
      if (begins_special_[byte])
        for (i32 special : specials_)
          if (text.starts_with(bytes_of(special))) {
            id = special, length = bytes_of(special).size();
            break;
          }
      ids.push_back(id);
      text.remove_prefix(length);
    }
  }
  std::string_view bytes_of(i32 id) const override {
    return id >= 0 && id < size() ? std::string_view(bytes_[static_cast<std::size_t>(id)]) : std::string_view();
  }
  bool is_special(i32 id) const override { return std::find(specials_.begin(), specials_.end(), id) != specials_.end(); }
  i32 size() const override { return static_cast<i32>(bytes_.size()); }

 private:
  std::vector<std::string> bytes_;  // [size] of each id; empty: a hole
  std::array<i32, 256> ids_{};      // of each byte
  std::vector<i32> specials_;       // the longest text first
  std::array<bool, 256> begins_special_{};

  static constexpr i32 most_ids = 1 << 16;  // holes cost memory: ids of a byte tokenizer are small
  i32 id_from(json const& value, std::string_view token, std::string const& where) {
    if (!value.in_range(0, most_ids - 1))
      refuse("{}: token {} has id {}; it must be from 0 to {}", where, show(token, 60), show(value.dump(), 40), most_ids - 1);
    i32 const id = static_cast<i32>(value.to_int());
    if (id >= size()) bytes_.resize(static_cast<std::size_t>(id) + 1);
    return id;
  }
  void take(i32 id, std::string text, std::string const& where) {
    auto& at = bytes_[static_cast<std::size_t>(id)];
    if (!at.empty() && at != text) refuse("{}: id {} stands for two tokens, {} and {}", where, id, show(at, 60), show(text, 60));
    at = std::move(text);
  }
  void add_special(json const& token, std::string const& where) {
    std::string const content = string_or(token, "content", "", where + ": added_tokens");
    if (content.empty()) refuse("{}: added_tokens holds a token without content", where);
    for (char const* flag : {"single_word", "lstrip", "rstrip"})
      if (bool_or(token, flag, false, where))
        refuse("{}: added token {} has {} set, which is not supported", where, show(content, 60), flag);
    i32 const id = id_from(token.at("id", where), content, where);
    for (i32 other : specials_)
      if (bytes_of(other) == content) refuse("{}: added token {} stands twice", where, show(content, 60));
    take(id, content, where);
    specials_.push_back(id);
  }
  void read_bytes(json::object const& vocab, std::string const& where) {
    auto const symbols = detail::byte_symbols();
    std::vector<bool> seen(256);
    for (auto& entry : vocab) {
      std::string const& token = entry.first;
      bool const special = std::any_of(specials_.begin(), specials_.end(), [&](i32 id) { return bytes_of(id) == token; });
      i32 const id = id_from(entry.second, token, where);
      if (special && bytes_of(id) == token) continue;
      auto const symbol = std::find_if(symbols.begin(), symbols.end(), [&](unsigned s) { return detail::utf8_of(s) == token; });
      if (symbol == symbols.end()) refuse("{}: model.vocab holds {}, which is neither a byte nor an added token", where, show(token, 60));
      if (!bytes_of(id).empty()) refuse("{}: id {} stands for two tokens", where, id);
      auto const byte = static_cast<std::size_t>(symbol - symbols.begin());
      seen[byte] = true;
      ids_[byte] = id;
      take(id, std::string(1, static_cast<char>(byte)), where);
    }
    auto const missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) refuse("{}: model.vocab lacks the symbol of byte {}", where, missing - seen.begin());
  }
};

// tokenizer.json, with the end-of-text token of tokenizer_config.json where that is given, and the chat template of chat_template.jinja
// or tokenizer_config.json.
#ifdef WEFT_COMPILED
std::unique_ptr<tokenizer> read_tokenizer(path const& folder);
#else
inline std::unique_ptr<tokenizer> read_tokenizer(path const& folder);
#endif

// The tokenizer of single bytes in Hugging Face's form: id of a byte is the byte, then the special tokens; the first of them ends a text.
inline json byte_tokenizer_json(std::vector<std::string> const& specials) {
  json::object vocab;
  json::array added;
  auto const symbols = detail::byte_symbols();
  for (int b = 0; b < 256; ++b) vocab.emplace_back(detail::utf8_of(symbols[static_cast<std::size_t>(b)]), b);
  for (std::size_t i = 0; i < specials.size(); ++i)
    added.push_back(json::object{{"id", static_cast<int>(256 + i)},
                                 {"content", specials[i]},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}});
  json const byte_level = json::object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  json bpe = json::object{{"type", "BPE"},
                          {"dropout", nullptr},
                          {"unk_token", nullptr},
                          {"continuing_subword_prefix", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", false},
                          {"byte_fallback", false},
                          {"ignore_merges", false},
                          {"vocab", std::move(vocab)},
                          {"merges", json::array{}}};
  return json::object{
      {"version", "1.0"},       {"truncation", nullptr},       {"padding", nullptr},        {"added_tokens", std::move(added)},
      {"normalizer", nullptr},  {"pre_tokenizer", byte_level}, {"post_processor", nullptr}, {"decoder", byte_level},
      {"model", std::move(bpe)}};
}

inline void write_byte_tokenizer(path const& folder, std::vector<std::string> const& specials, i32 longest_text) {
  write_file(folder / "tokenizer.json", byte_tokenizer_json(specials).dump(2) + "\n");
  json::object about{
      {"clean_up_tokenization_spaces", false}, {"model_max_length", longest_text}, {"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!specials.empty()) about.emplace_back("eos_token", specials[0]), about.emplace_back("pad_token", specials[0]);
  write_file(folder / "tokenizer_config.json", json(std::move(about)).dump(2) + "\n");
}
}  // namespace weft::io

#ifndef WEFT_COMPILED
#include <weft/io/read_tokenizer.hpp>
#endif
