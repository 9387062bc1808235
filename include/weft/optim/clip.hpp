// clip.hpp — clipping by the global norm (torch.nn.utils.clip_grad_norm_), and the guard against a loss or norm that is no number.
#pragma once
#include <weft/kernels/adamw.hpp>

namespace weft::optim {
using kernels::clip_coefficient;

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
