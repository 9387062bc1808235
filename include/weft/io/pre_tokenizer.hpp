// pre_tokenizer.hpp — how a text is cut into pre-tokens, none of which a merge crosses: the steps of tokenizer.json's pre_tokenizer, each
// a pattern. Split states its own, ByteLevel may bring GPT-2's, Digits takes digits out.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weft/io/json.hpp>
#include <weft/io/regex.hpp>

namespace weft::io {
class pre_tokenizer {
  struct step {
    regex pattern;
    bool keep_matches = true, keep_gaps = true;
  };

 public:
  pre_tokenizer(json const& from, std::string const& where) {
    read(from, where, 0);
    if (!bytes_) refuse("{}: pre_tokenizer has no ByteLevel; only byte-level tokenizers are supported", where);
  }

  // One thread's state for cutting.
  class cutter {
   public:
    explicit cutter(pre_tokenizer const& steps) {
      for (step const& s : steps.steps_) runs_.push_back({&s, regex::matcher(s.pattern), {}});
    }
    // Calls piece(bytes) for every pre-token, in order. The text is UTF-8.
    template <class F> void operator()(std::string_view text, F const& piece) { cut(0, text, piece); }

   private:
    struct run {
      step const* how;
      regex::matcher match;
      std::string room;
    };
    std::vector<run> runs_;

    template <class F> void cut(std::size_t depth, std::string_view text, F const& piece) {
      if (text.empty()) return;
      if (depth == runs_.size()) return piece(text);
      run& r = runs_[depth];
      std::string_view const seen = as_matched(text, r.room);
      std::size_t done = 0, from = 0, first = 0, last = 0;
      auto pass = [&](std::size_t begin, std::size_t end, bool keep) {
        if (keep) cut(depth + 1, text.substr(begin, end - begin), piece);
      };
      while (from <= text.size() && r.match(seen, from, first, last)) {
        pass(done, first, r.how->keep_gaps);
        pass(first, last, r.how->keep_matches);
        done = last;
        from = last > first ? last : last + std::max<std::size_t>(utf8_length(text.substr(last)), 1);
      }
      pass(done, text.size(), r.how->keep_gaps);
    }
  };

 private:
  std::vector<step> steps_;
  bool bytes_ = false;  // ByteLevel came; it is the last step

  // PCRE2's \s holds U+180E, which Unicode took out of White_Space in 6.3; U+200B stands in for it: a format character of equal length.
  static std::string_view as_matched(std::string_view text, std::string& room) {
    constexpr std::string_view separator = "\xe1\xa0\x8e", stand_in = "\xe2\x80\x8b";
    std::size_t at = text.find(separator);
    if (at == text.npos) return text;
    for (room = text; at != room.npos; at = room.find(separator, at)) room.replace(at, separator.size(), stand_in);
    return room;
  }
  void add(std::string_view pattern, bool literal, std::string const& where) {
    if (steps_.size() == 8) refuse("{}: pre_tokenizer has more than 8 steps", where);
    steps_.push_back({regex(pattern, literal, where)});
  }
  void read(json const& from, std::string const& where, int depth) {
    std::string const type = string_or(from, "type", "", where + ": pre_tokenizer");
    if (bytes_) refuse("{}: pre_tokenizer has {} after ByteLevel, which is not supported", where, show(type, 40));
    if (type == "Sequence" && depth < 4) {
      json const& steps = from.at("pretokenizers", where);
      if (!steps.as_array()) refuse("{}: pre_tokenizer.pretokenizers must be a list", where);
      for (json const& one : *steps.as_array()) read(one, where, depth + 1);
    } else if (type == "Split") {
      read_split(from, where);
    } else if (type == "Digits") {
      add(bool_or(from, "individual_digits", false, where) ? "\\p{N}" : "\\p{N}+", false, where);
    } else if (type == "ByteLevel") {
      if (bool_or(from, "add_prefix_space", true, where))
        refuse("{}: pre_tokenizer.add_prefix_space is true, which is not supported; set it to false", where);
      if (bool_or(from, "use_regex", true, where))
        add(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", false, where);
      bytes_ = true;
    } else {
      refuse("{}: pre_tokenizer type {} is not supported; known are Sequence, Split, Digits and ByteLevel", where, show(type, 40));
    }
  }
  void read_split(json const& from, std::string const& where) {
    json const& pattern = from.at("pattern", where);
    json const *expression = pattern.find("Regex"), *text = pattern.find("String"), *stated = expression ? expression : text;
    if (!stated || !stated->as_string() || stated->as_string()->empty())
      refuse("{}: pre_tokenizer.pattern must hold Regex or String, a text", where);
    std::string const behavior = string_or(from, "behavior", "", where);
    if (behavior != "Isolated" && behavior != "Removed")
      refuse("{}: pre_tokenizer.behavior {} is not supported; known are Isolated and Removed", where, show(behavior, 40));
    add(*stated->as_string(), !expression, where);
    if (behavior == "Removed") (bool_or(from, "invert", false, where) ? steps_.back().keep_gaps : steps_.back().keep_matches) = false;
  }
};
}  // namespace weft::io
