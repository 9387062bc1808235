// group_filter.hpp — dynamic sampling (DAPO, arXiv:2503.14476): groups whose scores are all equal teach nothing. They are dropped, and prompts are drawn
// on until a step is full. Rounds of generation run without an update; then the kept samples are handed to the step that learns from them, as
// samples that are known already, with the scores that they got.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include <weft/rollout/request.hpp>
#include <weft/train/row_feed.hpp>
#include <weft/train/step_metrics.hpp>

namespace weft::train {
struct placed_prompt {  // a prompt of a step
  row_feed::row row;
  u64 index;  // of the row in the data
  u32 draw;
};

class group_filter {
 public:
  void begin() { groups_.clear(), scores_.clear(), dropped_ = rounds_ = 0, replays_ = false; }
  size_t kept() const { return groups_.size(); }
  size_t dropped() const { return dropped_; }
  size_t rounds() const { return rounds_; }
  placed_prompt const& prompt(size_t i) const { return groups_[i].prompt; }

  // One round: [prompts, group, capacity]. value(sample): the number that has to differ within a group; samples without a score are left out.
  struct columns {
    i32 const *tokens, *lengths, *finishes;
    f32 const *log_probs, *log_kept, *entropies;
    rl::reward_result const* scores;
    size_t group, capacity;
  };
  template <class Value> void add_round(std::vector<placed_prompt> const& prompts, columns const& c, size_t wanted, Value const& value) {
    ++rounds_;
    for (size_t p = 0; p < prompts.size() && groups_.size() < wanted; ++p) {
      double least = 0, most = 0;
      size_t scored = 0;
      for (size_t i = p * c.group; i < (p + 1) * c.group; ++i) {
        if (c.scores[i].what != rl::reward_result::scored) continue;
        double const x = value(i);
        least = scored ? std::min(least, x) : x, most = scored ? std::max(most, x) : x;
        ++scored;
      }
      if (scored < 2 || least == most) {
        ++dropped_;
        continue;
      }
      kept_group g{prompts[p], {}};
      for (size_t i = p * c.group; i < (p + 1) * c.group; ++i) {
        size_t const from = i * c.capacity, to = from + size_t(c.lengths[i]);
        auto const cut = [&](auto const* x) { return std::vector(x + from, x + to); };
        g.samples.push_back({cut(c.tokens), cut(c.log_probs), cut(c.log_kept), cut(c.entropies), rollout::finish(c.finishes[i])});
        scores_[{std::int64_t(prompts[p].index), g.samples.back().ids}] = c.scores[i];
      }
      groups_.push_back(std::move(g));
    }
  }
  void replay() { replays_ = true; }  // from now on the kept samples are known
  bool known(rollout::sample_view<f32> const& s) const {
    if (!replays_ || size_t(s.prompt) >= groups_.size()) return false;
    auto const& kept = groups_[size_t(s.prompt)].samples[size_t(s.index)];
    std::copy(kept.ids.begin(), kept.ids.end(), s.ids);
    std::copy(kept.log_probs.begin(), kept.log_probs.end(), s.log_probs);
    std::copy(kept.log_kept.begin(), kept.log_kept.end(), s.log_kept);
    std::copy(kept.entropies.begin(), kept.entropies.end(), s.entropies);
    *s.length = i32(kept.ids.size()), *s.reason = kept.reason;
    return true;
  }
  rl::reward_result const* score_of(std::int64_t row, std::vector<i32> const& ids) const {  // null: not a kept one
    auto const found = replays_ ? scores_.find({row, ids}) : scores_.end();
    return found == scores_.end() ? nullptr : &found->second;
  }

 private:
  struct kept_sample {
    std::vector<i32> ids;
    std::vector<f32> log_probs, log_kept, entropies;
    rollout::finish reason;
  };
  struct kept_group {
    placed_prompt prompt;
    std::vector<kept_sample> samples;  // [group]
  };
  std::vector<kept_group> groups_;
  std::map<std::pair<std::int64_t, std::vector<i32>>, rl::reward_result> scores_;
  size_t dropped_ = 0, rounds_ = 0;
  bool replays_ = false;
};
}  // namespace weft::train
