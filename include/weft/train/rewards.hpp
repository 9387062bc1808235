// rewards.hpp — what a reward function is told, and how the graph calls it. rule_rewards.hpp has functions to choose from.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <weft/stages/reward.hpp>
#include <weft/train/row_feed.hpp>

namespace weft::train {
struct answer {
  io::data_row const& row;   // prompt, ground truth, data source, other columns
  std::string_view text;     // bytes of the response without special tokens
  std::span<i32 const> ids;  // the response as it was sampled
};
using reward_function = std::function<rl::reward_result(answer const&)>;
inline rl::reward_result scored(double value) { return {f32(value), rl::reward_result::scored}; }

// Calls a reward function for the graph's reward stage. Lives as long as the bound graph; the text is decoded into one string.
class reward_caller {
 public:
  reward_caller(row_feed& rows, io::tokenizer const* words, reward_function f) : rows_(rows), words_(words), function_(std::move(f)) {
    text_.reserve(1 << 16);
  }
  template <class Use> rl::reward_source<Use> source() { return {this, &score}; }

 private:
  row_feed& rows_;
  io::tokenizer const* words_;
  reward_function function_;
  std::string text_;

  static rl::reward_result score(void* context, i32 row, i32 const* ids, i32 count) {
    auto& me = *static_cast<reward_caller*>(context);
    me.text_.clear();
    for (i32 i = 0; me.words_ && i < count; ++i)
      if (!me.words_->is_special(ids[i])) me.text_ += me.words_->bytes_of(ids[i]);
    auto const of = me.rows_.at(u64(row));
    try {
      return me.function_({*of, me.text_, {ids, size_t(count)}});
    } catch (std::exception const&) { return {0, rl::reward_result::error}; }
  }
};
}  // namespace weft::train
