// regex.hpp — a pattern as tokenizer.json states it, run by PCRE2 with Unicode properties. Its just-in-time compiler is used where
// there is one. Texts are checked to be UTF-8 by the caller, once: PCRE2 would check the rest of the text again at every match.
#pragma once
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <weft/io/error.hpp>
#include <weft/io/utf8.hpp>

namespace weft::io {
class regex {
  struct release {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };

 public:
  regex(std::string_view pattern, bool literal, std::string const& where) {
    std::unique_ptr<pcre2_compile_context, release> const limits(pcre2_compile_context_create(nullptr));
    if (!limits) throw std::bad_alloc();
    pcre2_set_max_pattern_length(limits.get(), longest_pattern);
    pcre2_set_parens_nest_limit(limits.get(), 50);
    int error = 0;
    PCRE2_SIZE at = 0;
    std::uint32_t const kind = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    code_.reset(pcre2_compile(bytes_of(pattern), pattern.size(), kind, &error, &at, limits.get()));
    if (!code_) refuse("{}: PCRE2 cannot compile the pattern {} at byte {}: {}", where, show(pattern), at, text_of(error));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it fails, matches are interpreted
  }

  // Runs over one text. Belongs to one thread; the pattern may be shared.
  class matcher {
   public:
    explicit matcher(regex const& pattern)
        : code_(pattern.code_.get()), limits_(pcre2_match_context_create(nullptr)), found_(pcre2_match_data_create(2, nullptr)) {
      if (!found_ || !limits_) throw std::bad_alloc();
      pcre2_set_heap_limit(limits_.get(), 64 << 10);  // KiB
    }
    // The first match at or after a byte; false: none.
    bool operator()(std::string_view text, std::size_t from, std::size_t& first, std::size_t& last) {
      std::uint64_t const steps = 10'000 + 64 * std::uint64_t{text.size()};  // far more than a pattern needs that walks a text once
      pcre2_set_match_limit(limits_.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, 1u << 31)));
      int got = match(text, from, PCRE2_NO_UTF_CHECK);
      if (got == PCRE2_ERROR_JIT_STACKLIMIT) got = match(text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);  // its stack is the heap
      if (got == PCRE2_ERROR_NOMATCH) return false;
      if (got < 0) refuse("the tokenizer's pattern fails on a text of {} bytes, at byte {}: {}", text.size(), from, text_of(got));
      groups_ = got > 0 ? static_cast<std::size_t>(got) : 2;  // 0: more groups than there is room for
      auto const* bounds = pcre2_get_ovector_pointer(found_.get());
      first = bounds[0], last = bounds[1];
      if (first > last || first < from) refuse("the tokenizer's pattern matches backwards (\\K), which is not supported");
      return true;
    }

    // Of the last match, where a group stands that took part in it; otherwise nothing changes. Groups up to 1 are known.
    void group(std::size_t k, std::size_t& first, std::size_t& last) const {
      auto const* bounds = pcre2_get_ovector_pointer(found_.get());
      if (k >= groups_ || bounds[2 * k] == PCRE2_UNSET) return;
      first = bounds[2 * k], last = bounds[2 * k + 1];
    }

   private:
    pcre2_code const* code_;
    std::size_t groups_ = 0;  // of the last match: how many are set, itself among them
    std::unique_ptr<pcre2_match_context, release> limits_;
    std::unique_ptr<pcre2_match_data, release> found_;

    int match(std::string_view text, std::size_t from, std::uint32_t options) {
      return pcre2_match(code_, bytes_of(text), text.size(), from, options, found_.get(), limits_.get());
    }
  };

 private:
  static constexpr std::size_t longest_pattern = 16 << 10;  // bytes

  std::unique_ptr<pcre2_code, release> code_;

  static PCRE2_SPTR bytes_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data()); }
  static std::string text_of(int error) {
    PCRE2_UCHAR text[128] = {};
    pcre2_get_error_message(error, text, sizeof text);
    return reinterpret_cast<char const*>(text);
  }
};
}  // namespace weft::io
