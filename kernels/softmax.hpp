// softmax.hpp — the one softmax of a row of logits, for training and for sampling, so that both record the same bits.
#pragma once
#include <weft/element.hpp>

namespace weft::kernels {
template <class T> struct softmax_sums {
  T max;      // the largest logit
  T log_sum;  // log of the sum of exp((logit - max) * inverse_temperature), at least 0
  T entropy;  // NaN if a logit is NaN or infinite
};
template <class T> softmax_sums<T> softmax_row(size_t vocab, T const* logits /*[vocab]*/, T inverse_temperature);
template <class T> T log_prob_of(softmax_sums<T> const& row, T logit, T inverse_temperature);
}  // namespace weft::kernels
#include <weft/kernels/cpu/softmax.hpp>
