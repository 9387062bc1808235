// preference.hpp — losses of a pair, one answer preferred to the other. delta = (chosen - ref_chosen) - (rejected - ref_rejected) of
// summed log-probs (DPO, arXiv:2305.18290; IPO, arXiv:2310.12036), or of a reward model's scores (Bradley-Terry).
// The derivative in a sequence's sum is the derivative in each of its tokens' log-probs.
#pragma once
#include "term.hpp"

namespace weft::objective {
enum class dpo_loss : i32 {
  sigmoid,  // -(1 - s) log sigma(beta delta) - s log sigma(-beta delta), s = label_smoothing (s > 0: cDPO)
  hinge,    // max(0, 1 - beta delta)
  ipo,      // (delta - 1 / (2 beta))^2 with delta of means over tokens
  robust,   // (-(1 - s) log sigma(beta delta) + s log sigma(-beta delta)) / (1 - 2 s)
};

struct dpo : pair_term<> {
  static constexpr char const* name = "train/loss";
  dpo_loss loss = dpo_loss::sigmoid;
  double beta = 0.1, label_smoothing = 0;

  template <class T> WEFT_HD pair_loss<T> operator()(pair<T> const& p, sequence<T> const&) const {
    T const chosen = p.chosen - p.ref_chosen, rejected = p.rejected - p.ref_rejected;
    T const b = T(beta), s = T(label_smoothing), x = b * (chosen - rejected);
    T const yes = softplus(-x), no = softplus(x), d_yes = -sigmoid(-x), d_no = sigmoid(x);  // -log sigma(x), -log sigma(-x)
    switch (loss) {
      case dpo_loss::sigmoid:
        return along((1 - s) * yes + s * no, b * ((1 - s) * d_yes + s * d_no));
      case dpo_loss::hinge:
        return along(x < 1 ? 1 - x : T(0), x < 1 ? -b : T(0));
      case dpo_loss::robust:
        return along(((1 - s) * yes - s * no) / (1 - 2 * s), b * ((1 - s) * d_yes - s * d_no) / (1 - 2 * s));
      case dpo_loss::ipo: {
        T const off = chosen / p.chosen_length - rejected / p.rejected_length - 1 / (2 * b);
        return {off * off, 2 * off / p.chosen_length, -2 * off / p.rejected_length};
      }
    }
    return {};
  }
  template <class T> static WEFT_HD pair_loss<T> along(T value, T slope) { return {value, slope, -slope}; }

  static constexpr char const* metrics[] = {"rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins"};
  template <class T> WEFT_HD void measure(pair<T> const& p, sequence<T> const&, double* sums) const {
    double const chosen = beta * double(p.chosen - p.ref_chosen), rejected = beta * double(p.rejected - p.ref_rejected);
    sums[0] += chosen, sums[1] += rejected, sums[2] += chosen > rejected, sums[3] += chosen - rejected;
  }
};

struct bradley_terry : pair_term<scores> {  // -log sigma(chosen - rejected)
  static constexpr char const* name = "train/loss";
  template <class T> WEFT_HD pair_loss<T> operator()(pair<T> const& p, sequence<T> const&) const {
    T const x = p.chosen - p.rejected, slope = -sigmoid(-x);
    return {softplus(-x), slope, -slope};
  }
  static constexpr char const* metrics[] = {"rewards/accuracies", "rewards/margins"};
  template <class T> WEFT_HD void measure(pair<T> const& p, sequence<T> const&, double* sums) const {
    sums[0] += p.chosen > p.rejected, sums[1] += double(p.chosen - p.rejected);
  }
};
}  // namespace weft::objective
