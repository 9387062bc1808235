// row_feed.hpp — the rows of a data set as steps need them. What the next step will ask for is read and encoded on a thread while this
// step runs; what was not foreseen is read when it is asked for. The rows of the last step stay, for the rewards of their answers.
#pragma once
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <weft/io/dataset.hpp>

namespace weft::train {
class row_feed {
 public:
  using row = std::shared_ptr<io::data_row const>;

  explicit row_feed(io::dataset const& data) : data_(data) {}  // the data set outlives it

  // These rows, in this order. `next` is read ahead; it replaces what was to be read ahead before.
  std::vector<row> take(std::vector<u64> const& rows, std::vector<u64> next) {
    auto const begun = std::chrono::steady_clock::now();
    table known;
    if (ahead_.valid()) known = ahead_.get();
    std::vector<row> taken;
    {
      std::lock_guard const lock(use_);
      known.merge(held_);
      held_.clear();
      for (u64 i : rows) {
        row& held = held_[i];
        if (auto const found = known.find(i); !held) held = found != known.end() ? found->second : read(i);
        taken.push_back(held);
      }
    }
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (!next.empty())
      ahead_ = std::async(std::launch::async, [this, next = std::move(next)] {
        table rows_ahead;
        for (u64 i : next) rows_ahead.try_emplace(i, read(i));
        return rows_ahead;
      });
    return taken;
  }
  row at(u64 i) {  // from any thread
    std::lock_guard const lock(use_);
    row& held = held_[i];
    if (!held) held = read(i);
    return held;
  }
  double waited() { return std::exchange(waited_, 0.0); }  // seconds in take() since the last call

 private:
  using table = std::unordered_map<u64, row>;
  io::dataset const& data_;
  std::mutex use_;
  table held_;
  std::future<table> ahead_;  // its end is waited for when this is destroyed
  double waited_ = 0;

  row read(u64 i) const { return std::make_shared<io::data_row const>(data_.row(i)); }
};
}  // namespace weft::train
