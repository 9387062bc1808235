// statistics.hpp — mean and variance of the values that count, and whitening with them. Three steps, so that the rows of a batch
// may live on several devices: each row gives its moments; all moments are merged in row order; each row is rewritten. The result
// depends on the rows and their order alone. Values where the mask is 0 are neither read nor written other than by 0.
#pragma once
#include <cmath>
#include "../element.hpp"

namespace weft::objective {
struct moments {
  double count = 0, mean = 0, squares = 0;
};  // squares: sum of squared deviations from the mean

// Chan, Golub, LeVeque: moments of two sets together
WEFT_HD inline moments merge(moments const& a, moments const& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  double const n = a.count + b.count, d = b.mean - a.mean;
  return {n, a.mean + d * (b.count / n), a.squares + b.squares + d * d * (a.count * b.count / n)};
}

template <class T, class M> WEFT_HD moments moments_of(size_t width, T const* x /*[width]*/, M const* mask /*[width]*/) {
  moments m;
  for (size_t t = 0; t < width; ++t)
    if (mask[t] != 0) m.count += 1, m.mean += double(x[t]);
  if (m.count > 0) m.mean /= m.count;
  for (size_t t = 0; t < width; ++t)
    if (mask[t] != 0) m.squares += (double(x[t]) - m.mean) * (double(x[t]) - m.mean);
  return m;
}

WEFT_HD inline moments merged(size_t rows, moments const* of_row /*[rows]*/) {
  moments all;
  for (size_t i = 0; i < rows; ++i) all = merge(all, of_row[i]);
  return all;
}

// x <- (x - mean) / sqrt(variance + 1e-8), variance with n - 1. Fewer than two values have no variance: they become 0
// (verl raises). shift_mean = false adds the mean back.
template <class T, class M>
WEFT_HD void whiten(size_t width, moments const& all, M const* mask /*[width]*/, T* x /*[width]*/, bool shift_mean = true) {
  double const inverse = all.count > 1 ? 1 / std::sqrt(all.squares / (all.count - 1) + 1e-8) : 0, back = shift_mean ? 0 : all.mean;
  for (size_t t = 0; t < width; ++t) x[t] = mask[t] != 0 ? T((double(x[t]) - all.mean) * inverse + back) : T(0);
}
}  // namespace weft::objective
