// batches.hpp — which rows a step trains on: a pure function of the step, so that a resumed run needs no cursor but its step.
#pragma once
#include <cmath>
#include <vector>

#include <weft/io/dataset.hpp>

namespace weft::train {
// Without weights all files are one, and the last, incomplete batch of an epoch is dropped, as verl does. With weights every draw takes its
// file in fixed turns, so that the draws so far hold the shares to within two rows, and each file has epochs of its own.
struct row_order {
  struct source {
    std::uint64_t first, rows;  // of a file, among all
    double weight;              // above 0
  };
  std::uint64_t rows = 0, batch = 0, seed = 0;
  bool shuffle = true;
  std::vector<source> sources = {};  // with weights, a line each

  std::uint64_t steps_of_epoch() const { return rows / batch; }
  std::uint64_t epoch_of(std::uint64_t step) const { return step / steps_of_epoch(); }
  struct place {
    std::uint64_t epoch, row;  // the epoch is the row's own: (epoch, row) comes once in a run
  };
  place at(std::uint64_t step, std::uint64_t i) const {
    if (!sources.empty()) return weighted(step * batch + i);
    std::uint64_t const epoch = epoch_of(step), position = step % steps_of_epoch() * batch + i;
    return {epoch, shuffle ? io::shuffled(position, rows, epoch, seed) : position};
  }

 private:
  // The first file takes a draw whenever its share of the draws so far passes a whole number; of those that it leaves, the second; and so on.
  place weighted(std::uint64_t draw) const {
    double left = 0;
    for (source const& s : sources) left += s.weight;
    std::size_t k = 0;
    for (;; ++k) {
      if (k + 1 == sources.size()) break;
      auto const share = static_cast<std::uint64_t>(std::ceil(sources[k].weight / left * 4294967296.0));  // in 2^-32
      auto const taken = [&](std::uint64_t draws) { return (draws >> 32) * share + ((draws & 0xffffffffu) * share >> 32); };
      std::uint64_t const before = taken(draw);
      if (taken(draw + 1) > before) {
        draw = before;
        break;
      }
      draw -= before;
      left -= sources[k].weight;
    }
    source const& s = sources[k];
    std::uint64_t const epoch = draw / s.rows, position = draw % s.rows;
    return {epoch, s.first + (shuffle ? io::shuffled(position, s.rows, epoch, seed + k) : position)};
  }
};
}  // namespace weft::train
