// softmax.hpp — the one softmax of a row of logits, for training and for sampling, so that both record the same bits.
#pragma once
#include <weft/element.hpp>

namespace weft::kernels {
template <class T> struct softmax_sums {
  T max;                // of logit * inverse_temperature
  T log_sum;            // log of the sum of exp(logit * inverse_temperature - max), at least 0
  T entropy;            // NaN if a logit is NaN or infinite
  T log_sum_exp() const { return max + log_sum; }
};
template <class T> softmax_sums<T> softmax_row(size_t vocab, T const* logits /*[vocab]*/, T inverse_temperature);
template <class T> T log_prob_of(softmax_sums<T> const& row, T logit, T inverse_temperature);
}  // namespace weft::kernels
#include <weft/kernels/cpu/softmax.hpp>
