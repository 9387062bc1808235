// added_tokens.hpp — the tokens that stand beside the vocabulary (special ones, and others), cut out of a text before anything else
// looks at it: the leftmost first, of those the longest. Flags as in tokenizer.json: single_word (not inside a word), lstrip and rstrip
// (takes the blanks before and after along).
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <weft/element.hpp>
#include <weft/io/unicode.hpp>

namespace weft::io {
struct added_token {
  std::string text;
  i32 id = -1;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

class added_tokens {
 public:
  added_tokens() = default;
  explicit added_tokens(std::vector<added_token> tokens) : tokens_(std::move(tokens)) {  // texts are different and not empty
    std::sort(tokens_.begin(), tokens_.end(), [](auto& a, auto& b) { return a.text < b.text; });
    for (auto& token : tokens_) begins_[static_cast<unsigned char>(token.text[0])] = true;
    alike_ = std::count(begins_.begin(), begins_.end(), true) == 1;
  }
  // Calls ordinary(text) and added(id) for the pieces of a text, in order.
  template <class F, class G> void cut(std::string_view text, F const& ordinary, G const& added) const {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
      if (alike_ && (at = text.find(tokens_[0].text[0], at)) == text.npos) break;
      added_token const* found = begins_[static_cast<unsigned char>(text[at])] ? longest(text.substr(at)) : nullptr;
      if (!found) {
        ++at;
        continue;
      }
      std::size_t first = at, last = at += found->text.size();
      if (found->single_word && (ends_with_word(text.substr(0, first)) || begins_with_word(text.substr(last)))) continue;
      if (found->lstrip) first = std::max(first - blanks_at_end(text.substr(0, first)), done);
      if (found->rstrip) last += blanks_at_begin(text.substr(last));
      if (done < first) ordinary(text.substr(done, first - done));
      added(found->id);
      done = last;
    }
    if (done < text.size()) ordinary(text.substr(done));
  }

 private:
  std::vector<added_token> tokens_;  // sorted by text: those with a common beginning stand together
  std::array<bool, 256> begins_{};
  bool alike_ = false;  // all begin with the same byte

  added_token const* longest(std::string_view text) const {  // of those that the text begins with
    added_token const *low = tokens_.data(), *high = low + tokens_.size(), *found = nullptr;
    for (std::size_t n = 0; n < text.size() && low != high; ++n) {  // [low, high) begin with the text's first n bytes
      auto byte = [&](added_token const& t) { return n < t.text.size() ? static_cast<unsigned char>(t.text[n]) : -1; };
      int const wanted = static_cast<unsigned char>(text[n]);
      low = std::partition_point(low, high, [&](auto& t) { return byte(t) < wanted; });
      high = std::partition_point(low, high, [&](auto& t) { return byte(t) == wanted; });
      if (low != high && low->text.size() == n + 1) found = low;
    }
    return found;
  }
};
}  // namespace weft::io
