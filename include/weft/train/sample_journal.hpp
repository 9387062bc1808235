// sample_journal.hpp — finished samples on disk before they count, and taken from there when a run goes on after a crash.
// A sample is known by (draw number, index): the draw number tells epoch and row, so it stands once in a run. It is taken only where it would
// be drawn again bit for bit: `source` is a checksum of everything else that it depends on, the weights among it.
#pragma once
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <weft/io/journal.hpp>
#include <weft/rollout/request.hpp>

namespace weft::train {
class sample_journal {
 public:
  explicit sample_journal(io::path const& file) : file_(file) {
    io::read_journal(file, [&](io::bytes_view payload) {
      io::sample_view<f32> s;
      if (!io::read_sample(payload, s)) return;
      known_.push_back({s.head.draw, s.head.sample, bytes_.size(), payload.size()});
      bytes_.insert(bytes_.end(), payload.begin(), payload.end());
      bytes_.resize((bytes_.size() + 7) / 8 * 8);
    });
    std::sort(known_.begin(), known_.end(), before);
    journal_.emplace(file);
  }
  io::journal_end const& opened() const { return journal_->opened(); }
  size_t known() const { return known_.size(); }
  void begin_step(std::int64_t step, std::uint32_t source) { step_ = i32(step), source_ = source; }
  void sync() { journal_->sync(); }  // once a step, before its samples are scored
  void committed() {                 // a checkpoint holds what the samples led to
    journal_->restart();
    known_.clear();
    bytes_.clear();
  }
  bool take(rollout::sample_view<f32> const& to) const {  // fills the sample in if it is known
    record const wanted{to.draw, to.index, 0, 0};
    auto const found = std::lower_bound(known_.begin(), known_.end(), wanted, before);
    if (found == known_.end() || before(wanted, *found)) return false;
    io::sample_view<f32> s;
    if (!io::read_sample({bytes_.data() + found->at, found->bytes}, s) || s.head.count > to.capacity || s.head.step != step_ ||
        s.head.source != source_)
      return false;
    size_t const n = size_t(s.head.count);
    std::copy_n(s.ids, n, to.ids);
    std::copy_n(s.log_probs, n, to.log_probs);
    std::copy_n(s.log_kept, n, to.log_kept);
    std::copy_n(s.entropies, n, to.entropies);
    *to.length = s.head.count;
    *to.reason = rollout::finish(s.head.finish);
    return true;
  }
  void put(rollout::sample_view<f32> const& s) {
    io::sample_head head;
    head.draw = s.draw;
    head.sample = s.index;
    head.step = step_;
    head.source = source_;
    head.finish = i32(*s.reason);
    head.count = *s.length;
    io::append_sample<f32>(*journal_, {head, s.log_probs, s.log_kept, s.entropies, s.ids});
  }

 private:
  struct record {
    std::uint64_t draw;
    i32 sample;
    size_t at, bytes;
  };
  static bool before(record const& a, record const& b) { return a.draw != b.draw ? a.draw < b.draw : a.sample < b.sample; }
  io::path file_;
  std::optional<io::journal> journal_;
  std::vector<record> known_;
  std::vector<std::byte> bytes_;
  i32 step_ = 0;
  std::uint32_t source_ = 0;
};
}  // namespace weft::train
