// bpe_tokenizer.hpp — tokenizer.json of a byte-level BPE tokenizer with merges, as Hugging Face's `tokenizers` runs it: added tokens cut
// out, normalization, pre-tokens, merges. What is not supported is refused by key and value.
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <weft/io/added_tokens.hpp>
#include <weft/io/bpe.hpp>
#include <weft/io/joints.hpp>
#include <weft/io/pre_tokenizer.hpp>
#include <weft/io/tokenizer.hpp>
#include <weft/io/word_cache.hpp>

namespace weft::io {
class bpe_tokenizer : public tokenizer {
 public:
  using tokenizer::encode;
  bpe_tokenizer(json const& root, std::string const& where) : steps_(root.at("pre_tokenizer", where), where), bpe_(read_bpe(root, where)) {
    detail::check_around(root, where);
    read_normalizer(root.find("normalizer"), where);
    read_added(root, where);
    read_post_processor(root.find("post_processor"), where);
    find_short_cuts();
    cache_ = std::make_unique<word_cache>();
  }
  void encode(std::string_view text, std::vector<i32>& ids) const override {
    if (!is_utf8(text)) refuse("a text of {} bytes is not UTF-8; it cannot be encoded", text.size());
    std::unique_lock const lock(cache_use_, std::try_to_lock);  // another thread at it: go without
    word_cache* const cache = lock ? cache_.get() : nullptr;
    pre_tokenizer::cutter cut(steps_);
    if (std::size_t const need = ids.size() + text.size() / 3; need > ids.capacity()) ids.reserve(std::max(need, 2 * ids.capacity()));
    std::string room;
    auto added = [&](i32 id) { ids.push_back(id); };
    auto normal = [&](std::string_view piece) { cut(piece, [&](std::string_view word) { encode_pre_token(word, cache, ids); }); };
    raw_.cut(text, [&](std::string_view piece) { late_.cut(nfc_ ? (*nfc_)(piece, room) : piece, normal, added); }, added);
  }
  std::string_view bytes_of(i32 id) const override { return bpe_.words()[id]; }
  bool is_special(i32 id) const override { return id >= 0 && id < size() && special_[static_cast<std::size_t>(id)]; }
  i32 size() const override { return bpe_.words().size(); }

 private:
  pre_tokenizer steps_;
  bpe bpe_;
  bool ignore_merges_ = false;  // a pre-token that is a token is taken whole
  std::unique_ptr<nfc> nfc_;    // null: texts stay as they are
  added_tokens raw_, late_;     // looked for before normalization, and after
  std::vector<bool> special_;   // [size]
  std::vector<bool> whole_;     // [size] tokens that come out when their own bytes are encoded
  joints joints_;
  std::unique_ptr<word_cache> cache_;
  mutable std::mutex cache_use_;

  void find_short_cuts() {
    whole_.resize(static_cast<std::size_t>(size()));
    std::vector<i32> ids;
    for (i32 id = 0; id < size(); ++id) {
      std::string_view const token = bytes_of(id);
      if (token.empty() || bpe_.words().find(token) != id) continue;
      joints_.add(token);
      ids.clear();
      whole_[static_cast<std::size_t>(id)] = bpe_.knows_bytes(token) && (bpe_.encode(token, ids), ids.size() == 1 && ids[0] == id);
      if (whole_[static_cast<std::size_t>(id)] && token.size() == 3 && utf8_length(token) == 3) bpe_.add_character(token, id);
    }
  }
  void encode_pre_token(std::string_view word, word_cache* cache, std::vector<i32>& ids) const {
    joints_.cut(word, [&](std::string_view part, bool whole) {
      bool const all = part.size() == word.size();  // of the pre-token
      if (whole && part.size() == 3)
        if (i32 const id = bpe_.find_character(part); id >= 0) return ids.push_back(id);
      if (!cache || part.size() > word_cache::longest) return encode_new(part, all, whole, ids);
      auto const known = cache->find(part, all);
      for (i32 id : known) ids.push_back(id);
      if (!known.empty()) return;
      std::size_t const first = ids.size();
      encode_new(part, all, whole, ids);
      cache->put(part, all, std::span(ids).subspan(first));
    });
  }
  void encode_new(std::string_view word, bool all, bool whole, std::vector<i32>& ids) const {
    i32 const id = bpe_.words().find(word);
    if (id >= 0 && (whole_[static_cast<std::size_t>(id)] || (all && ignore_merges_))) ids.push_back(id);
    else if (!whole || !bpe_.encode_characters(word, ids)) bpe_.encode(word, ids);
  }

  // --- reading ---
  static std::vector<added_token> added_of(json const& root, std::string const& where) {
    std::vector<added_token> out;
    json const* added = root.find("added_tokens");
    if (!added || added->is_null()) return out;
    if (!added->as_array()) refuse("{}: added_tokens must be a list", where);
    for (json const& from : *added->as_array()) {
      added_token t;
      t.text = string_or(from, "content", "", where + ": added_tokens");
      if (t.text.empty()) refuse("{}: added_tokens holds a token without content", where);
      t.id = static_cast<i32>(integer_of(from, "id", 0, std::numeric_limits<i32>::max() - 1, where + ": added token " + show(t.text, 60)));
      t.single_word = bool_or(from, "single_word", false, where);
      t.lstrip = bool_or(from, "lstrip", false, where);
      t.rstrip = bool_or(from, "rstrip", false, where);
      t.special = bool_or(from, "special", false, where);
      t.normalized = bool_or(from, "normalized", !t.special, where);
      out.push_back(std::move(t));
    }
    return out;
  }
  static vocabulary read_words(json::object const& vocab, std::vector<added_token> const& added, std::string const& where) {
    struct entry {
      i32 id;
      std::string_view name;
      bool added;
    };
    std::vector<entry> entries;
    entries.reserve(vocab.size() + added.size());
    std::size_t const most = 4 * (vocab.size() + added.size()) + 65536;  // holes cost memory
    auto take = [&](std::int64_t id, std::string_view name, bool is_added) {
      if (id < 0 || static_cast<std::size_t>(id) >= most)
        refuse("{}: token {} has id {}; with {} tokens it must be below {}", where, show(name, 60), id, vocab.size() + added.size(), most);
      entries.push_back({static_cast<i32>(id), name, is_added});
    };
    for (auto& [name, id] : vocab) {
      if (!id.in_range(0, std::numeric_limits<i32>::max()))
        refuse("{}: token {} has the id {}, which is none", where, show(name, 60), show(id.dump(), 40));
      take(id.to_int(), name, false);
    }
    for (auto& token : added) take(token.id, token.text, true);
    std::stable_sort(entries.begin(), entries.end(), [](entry const& a, entry const& b) { return a.id < b.id; });
    vocabulary words(vocab.size(), entries.empty() ? 0 : static_cast<std::size_t>(entries.back().id) + 1);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entry const& e = entries[i];
      bool const again = i > 0 && entries[i - 1].id == e.id;
      if (again && (entries[i - 1].added || entries[i - 1].name != e.name))
        refuse("{}: id {} stands for two tokens, {} and {}", where, e.id, show(entries[i - 1].name, 60), show(e.name, 60));
      if (again) continue;
      auto const bytes = e.added ? std::nullopt : detail::bytes_of_symbols(e.name);
      words.append(e.id, bytes ? std::string_view(*bytes) : e.name, bytes.has_value());
    }
    return words;
  }
  static bpe read_bpe(json const& root, std::string const& where) {
    json const& model = root.at("model", where);
    if (std::string const type = string_or(model, "type", "BPE", where); type != "BPE")
      refuse("{}: model.type {} is not supported, only BPE", where, show(type, 40));
    if (number_or(model, "dropout", 0, 0, 1, where) != 0) refuse("{}: model.dropout is not 0, which is not supported", where);
    if (bool_or(model, "byte_fallback", false, where)) refuse("{}: model.byte_fallback is true, which is not supported", where);
    json const& vocab = model.at("vocab", where);
    if (!vocab.as_object()) refuse("{}: model.vocab must be an object", where);
    json::array const none;
    json const* listed = model.find("merges");
    if (listed && !listed->is_null() && !listed->as_array()) refuse("{}: model.merges must be a list", where);
    json::array const& merges = listed && listed->as_array() ? *listed->as_array() : none;
    bpe out(read_words(*vocab.as_object(), added_of(root, where), where), merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) read_merge(merges[i], i, out, where);
    return out;
  }
  static void read_merge(json const& from, std::size_t rank, bpe& out, std::string const& where) {
    std::string_view left, right;
    if (auto* text = from.as_string()) {  // "left right"
      std::size_t const gap = text->find(' ');
      if (gap != text->npos && text->find(' ', gap + 1) == text->npos)
        left = std::string_view(*text).substr(0, gap), right = std::string_view(*text).substr(gap + 1);
    } else if (auto* pair = from.as_array(); pair && pair->size() == 2 && (*pair)[0].as_string() && (*pair)[1].as_string()) {
      left = *(*pair)[0].as_string(), right = *(*pair)[1].as_string();
    }
    if (left.empty() || right.empty())
      refuse("{}: model.merges[{}] is {}; it must be a pair of tokens, or both with one blank between", where, rank, show(from.dump(), 60));
    auto const first = detail::bytes_of_symbols(left), second = detail::bytes_of_symbols(right);
    auto const id = [&](auto const& bytes, std::string_view name) {
      i32 const found = bytes ? out.words().find(*bytes) : -1;
      if (found < 0) refuse("{}: model.merges[{}] needs {}, which model.vocab lacks", where, rank, show(name, 60));
      return found;
    };
    i32 const a = id(first, left), b = id(second, right);
    std::optional<std::string> const both = *first + *second;
    out.add_merge(a, b, id(both, std::string(left) + std::string(right)));
  }
  void read_normalizer(json const* from, std::string const& where) {
    if (!from || from->is_null()) return;
    std::string const type = string_or(*from, "type", "", where + ": normalizer");
    if (type == "NFC") {
      nfc_ = std::make_unique<nfc>();
    } else if (json const* parts = from->find("normalizers"); type == "Sequence" && parts && parts->as_array()) {
      for (json const& part : *parts->as_array()) {
        if (string_or(part, "type", "", where) == "Sequence") refuse("{}: normalizer has a Sequence in a Sequence", where);
        read_normalizer(&part, where);
      }
    } else {
      refuse("{}: normalizer type {} is not supported, only NFC or none", where, show(type, 40));
    }
  }
  void read_added(json const& root, std::string const& where) {
    ignore_merges_ = bool_or(root.at("model", where), "ignore_merges", false, where);
    special_.resize(static_cast<std::size_t>(size()));
    std::vector<added_token> raw, late;
    for (added_token& t : added_of(root, where)) {
      auto const bytes = detail::bytes_of_symbols(t.text);
      if (i32 const word = bytes ? bpe_.words().find(*bytes) : -1; word >= 0 && word != t.id)
        refuse("{}: added token {} has id {}, and id {} in model.vocab", where, show(t.text, 60), t.id, word);
      special_[static_cast<std::size_t>(t.id)] = t.special;
      std::string room;
      if (t.normalized && nfc_) t.text = std::string((*nfc_)(t.text, room));
      for (auto* group : {&raw, &late})
        for (auto& other : *group)
          if (other.text == t.text) refuse("{}: added token {} stands twice", where, show(t.text, 60));
      (t.normalized ? late : raw).push_back(std::move(t));
    }
    raw_ = added_tokens(std::move(raw)), late_ = added_tokens(std::move(late));
  }
  void read_post_processor(json const* from, std::string const& where) {
    if (!from || from->is_null()) return;
    std::string const type = string_or(*from, "type", "", where + ": post_processor");
    if (json const* parts = from->find("processors"); type == "Sequence" && parts && parts->as_array()) {
      for (json const& part : *parts->as_array()) {
        if (string_or(part, "type", "", where) == "Sequence") refuse("{}: post_processor has a Sequence in a Sequence", where);
        read_post_processor(&part, where);
      }
    } else if (json const* single = from->find("single"); type == "TemplateProcessing" && single && single->as_array()) {
      bool before = true;
      for (json const& piece : *single->as_array()) {
        json const* special = piece.find("SpecialToken");
        if (!special) {
          if (!piece.find("Sequence") || !before) refuse("{}: post_processor.single must hold the text once", where);
          before = false;
          continue;
        }
        std::string const name = string_or(*special, "id", "", where);
        json const* known = from->at("special_tokens", where).find(name);
        json const* ids = known ? known->find("ids") : nullptr;
        if (!ids || !ids->as_array()) refuse("{}: post_processor.special_tokens lacks the ids of {}", where, show(name, 60));
        for (json const& id : *ids->as_array()) {
          if (!id.in_range(0, size() - 1)) refuse("{}: post_processor.special_tokens: {} is no token's id", where, show(id.dump(), 40));
          (before ? begin_ids_ : end_ids_).push_back(static_cast<i32>(id.to_int()));
        }
      }
      if (before) refuse("{}: post_processor.single must hold the text once", where);
    } else if (type != "ByteLevel") {
      refuse("{}: post_processor type {} is not supported; known are ByteLevel and TemplateProcessing", where, show(type, 40));
    }
  }
};

namespace detail {
inline std::unique_ptr<tokenizer> make_bpe_tokenizer(json const& root, std::string const& where) {
  return std::make_unique<bpe_tokenizer>(root, where);
}
}  // namespace detail
}  // namespace weft::io
