// task_source.hpp — the data of one more task of a step, beside the prompts that are answered: its own files, its own order of rows, its own epochs.
#pragma once
#include <weft/train/batches.hpp>
#include <weft/train/row_feed.hpp>

namespace weft::train {
class task_source {
 public:
  task_source(io::dataset data, char const* name, std::uint64_t batch, std::uint64_t seed, bool shuffle)
      : data_(std::move(data)), rows_(data_), order_{data_.size(), batch, seed, shuffle} {
    if (order_.rows < batch) io::refuse("{}: {} rows, fewer than its batch of {}; lower it", name, order_.rows, batch);
  }
  void take(std::uint64_t step) { current_ = rows_.take(numbers(step), numbers(step + 1)); }
  std::size_t batch() const { return order_.batch; }
  io::data_row const& row(std::size_t i) const { return *current_[i]; }  // i below batch()

 private:
  io::dataset data_;
  row_feed rows_;
  row_order order_;
  std::vector<row_feed::row> current_;
  std::vector<std::uint64_t> numbers(std::uint64_t step) const {
    std::vector<std::uint64_t> rows;
    for (std::uint64_t i = 0; i < order_.batch; ++i) rows.push_back(order_.at(step, i).row);
    return rows;
  }
};
}  // namespace weft::train
