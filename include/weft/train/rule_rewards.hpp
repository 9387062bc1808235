// rule_rewards.hpp — rewards that a rule can give: 1 if the answer within a response is the right one, otherwise 0; an error for a row without
// a right answer. Chosen by name (reward.function); `auto` goes by the row's data_source, as verl does.
#pragma once
#include <weft/io/error.hpp>
#include <weft/train/answer_text.hpp>
#include <weft/train/options.hpp>
#include <weft/train/rewards.hpp>

#ifdef WEFT_TOKENIZER
#include <weft/io/regex.hpp>
#endif

namespace weft::train {
namespace detail {
template <class Right> rl::reward_result judged(answer const& a, Right const& right) {
  if (a.row.ground_truth.empty()) return {0, rl::reward_result::error};
  return scored(right(std::string_view(a.text), std::string_view(a.row.ground_truth)));
}
}  // namespace detail

// The response, without blanks around it, is the ground truth.
inline rl::reward_result exact_match(answer const& a) {
  return detail::judged(a, [](auto text, auto truth) { return trimmed(text) == trimmed(truth); });
}
// The last "#### number" is the ground truth, which may itself be a solution that ends so.
inline rl::reward_result gsm8k(answer const& a) {
  return detail::judged(a, [](auto text, auto truth) {
    std::string right = last_hash_number(truth).value_or(std::string(trimmed(truth)));
    right.erase(std::remove_if(right.begin(), right.end(), [](char c) { return c == ',' || c == '$'; }), right.end());
    return last_hash_number(text) == right;
  });
}
// What the last \boxed{} holds is the ground truth, which may itself be a solution with a box: the same spelling or the same number.
inline rl::reward_result boxed(answer const& a) {
  return detail::judged(a, [](auto text, auto truth) {
    auto const given = last_boxed(text);
    return given && same_answer(*given, last_boxed(truth).value_or(truth));
  });
}

#ifdef WEFT_TOKENIZER
// What the first group of the pattern's last match holds (all of it, if there is no group) is the ground truth; a row without one scores 1
// for a match. A pattern that backtracks without end is an error of the sample. Of several threads each has a matcher of its own.
class regex_match {
 public:
  explicit regex_match(std::string const& pattern) {
    if (pattern.empty()) io::refuse("reward.function=regex: set reward.pattern");
    io::regex(pattern, false, "reward.pattern");  // an error in it is told about the pattern itself
    last_ = std::make_shared<io::regex const>("(?s:\\A.*)\\K(?:" + pattern + ")", false, "reward.pattern");
  }
  rl::reward_result operator()(answer const& a) const {
    if (!io::is_utf8(a.text)) return scored(0);
    io::regex::matcher match(*last_);
    std::size_t first = 0, last = 0;
    if (!match(a.text, 0, first, last)) return scored(0);
    match.group(1, first, last);
    std::string_view const found = a.text.substr(first, last - first);
    return scored(a.row.ground_truth.empty() || trimmed(found) == trimmed(a.row.ground_truth));
  }

 private:
  std::shared_ptr<io::regex const> last_;
};
#endif

// verl's choice by data_source; exact_match where it has none.
inline rl::reward_result by_data_source(answer const& a) {
  std::string_view const from = a.row.data_source;
  if (from == "openai/gsm8k") return gsm8k(a);
  for (std::string_view math : {"lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500", "math_dapo", "math"})
    if (from == math) return boxed(a);
  return from.starts_with("aime") ? boxed(a) : exact_match(a);
}

inline reward_function reward_named(reward_options const& o) {
  if (o.function == "auto") return by_data_source;
  if (o.function == "exact_match") return exact_match;
  if (o.function == "gsm8k") return gsm8k;
  if (o.function == "boxed") return boxed;
#ifdef WEFT_TOKENIZER
  if (o.function == "regex") return regex_match(o.pattern);
#else
  if (o.function == "regex") io::refuse("reward.function=regex needs PCRE2 (libpcre2-dev), which this build is without");
#endif
  io::refuse("reward.function={}: choose one of auto, exact_match, gsm8k, boxed, regex", io::show(o.function));
}
}  // namespace weft::train
