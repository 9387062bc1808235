// clip.hpp — clipping by the global norm (torch.nn.utils.clip_grad_norm_), and the guard against a loss or norm that is no number.
#pragma once
#include <cmath>
#include "../element.hpp"

namespace weft::optim {
// What gradients are multiplied by: max_norm / (norm + 1e-6), at most 1. max_norm <= 0: no clipping.
WEFT_HD inline double clip_coefficient(double norm, double max_norm) {
  double const k = max_norm > 0 ? max_norm / (norm + 1e-6) : 1;
  return k < 1 ? k : 1;
}

// Steps that must be left out: the loss or the norm of the gradient is NaN or infinite. Three in a row end the run.
struct finite_guard {
  i32 skipped = 0, in_a_row = 0;
  static constexpr i32 most_in_a_row = 3;

  // true: apply the step
  WEFT_HD bool admit(double loss, double norm) {
    bool const finite = loss - loss == 0 && norm - norm == 0;
    in_a_row = finite ? 0 : in_a_row + 1;
    skipped += !finite;
    return finite;
  }
  WEFT_HD bool must_stop() const { return in_a_row >= most_in_a_row; }
};
}  // namespace weft::optim
