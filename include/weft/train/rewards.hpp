// rewards.hpp — what a reward function is told, and how the graph calls it. rule_rewards.hpp has functions to choose from.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <weft/objective/reward.hpp>
#include <weft/stages/reward.hpp>
#include <weft/train/group_filter.hpp>
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
  // overlong: what a long answer loses (buffer 0: nothing); kept: scores that are known already, or null
  reward_caller(row_feed& rows, io::tokenizer const* words, reward_function f, objective::overlong const& overlong = {0, 0, 0},
                group_filter const* kept = nullptr)
      : rows_(rows), words_(words), function_(std::move(f)), overlong_(overlong), kept_(kept) {
    text_.reserve(1 << 16);
  }
  template <class Use> rl::reward_source<Use> source() { return {this, &score}; }

 private:
  row_feed& rows_;
  io::tokenizer const* words_;
  reward_function function_;
  objective::overlong overlong_;
  group_filter const* kept_;
  std::string text_;

  static rl::reward_result score(void* context, i32 row, i32 const* ids, i32 count) {
    auto& me = *static_cast<reward_caller*>(context);
    me.text_.clear();
    for (i32 i = 0; me.words_ && i < count; ++i)
      if (!me.words_->is_special(ids[i])) me.text_ += me.words_->bytes_of(ids[i]);
    auto const of = me.rows_.at(u64(row));
    if (me.kept_)
      if (auto const* const known = me.kept_->score_of(row, {ids, ids + count})) return *known;
    try {
      auto r = me.function_({*of, me.text_, {ids, size_t(count)}});
      if (me.overlong_.buffer > 0) r.value += f32(objective::overlong_penalty(me.overlong_, count));
      return r;
    } catch (std::exception const&) { return {0, rl::reward_result::error}; }
  }
};
}  // namespace weft::train
