// batches.hpp — which rows a step trains on: a pure function of the step, so that a resumed run needs no cursor but its step.
#pragma once
#include <weft/io/dataset.hpp>

namespace weft::train {
struct row_order {
  std::uint64_t rows = 0, batch = 0, seed = 0;
  bool shuffle = true;

  std::uint64_t steps_of_epoch() const { return rows / batch; }  // the last, incomplete batch is dropped, as verl does
  struct place {
    std::uint64_t epoch, row;
  };
  place at(std::uint64_t step, std::uint64_t i) const {
    std::uint64_t const epoch = step / steps_of_epoch(), position = step % steps_of_epoch() * batch + i;
    return {epoch, shuffle ? io::shuffled(position, rows, epoch, seed) : position};
  }
};
}  // namespace weft::train
