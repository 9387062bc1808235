// softmax.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
template <class T> [[gnu::noinline]] softmax_sums<T> softmax_row(size_t vocab, T const* logits, T inverse_temperature) {
  T max = -infinity<T>, sum = 0, weighted = 0;
  for (size_t i = 0; i < vocab; ++i) max = logits[i] * inverse_temperature > max ? logits[i] * inverse_temperature : max;
  for (size_t i = 0; i < vocab; ++i) {
    T const x = fma(logits[i], inverse_temperature, -max), e = std::exp(x);
    sum += e;
    weighted = fma(x, e, weighted);
  }
  T const log_sum = std::log(sum);
  return {max, log_sum, log_sum - weighted / sum};
}
template <class T> [[gnu::noinline]] T log_prob_of(softmax_sums<T> const& row, T logit, T inverse_temperature) {
  return fma(logit, inverse_temperature, -row.max) - row.log_sum;
}
}  // namespace weft::kernels
