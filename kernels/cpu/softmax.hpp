// softmax.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
template <class T> [[gnu::noinline]] softmax_sums<T> softmax_row(size_t vocab, T const* logits, T inverse_temperature) {
  constexpr size_t stretch = 64 * lanes<T>;  // sums of sums: a long row loses no digits
  constexpr T nothing = -10000;              // exp of it is 0
  vec<T> most = broadcast(-infinity<T>), sum{}, weighted{};
  each_vector<T>(vocab, [&](size_t i, auto at) { most = maximum<T>(at.or_else(at.load(logits + i), -infinity<T>), most); });
  vec<T> const max = broadcast(maximum_of<T>(most)), scale = broadcast(inverse_temperature);
  for (size_t first = 0; first < vocab; first += stretch) {
    vec<T> part{}, weighted_part{};
    each_vector<T>(vocab - first < stretch ? vocab - first : stretch, [&](size_t i, auto at) {
      vec<T> const x = at.or_else((at.load(logits + first + i) - max) * scale, nothing), e = exp(x);
      part += e;
      weighted_part = fma(x, e, weighted_part);
    });
    sum += part;
    weighted += weighted_part;
  }
  T const total = sum_of<T>(sum), log_sum = std::log(total);
  return {max[0], log_sum, log_sum - sum_of<T>(weighted) / total};
}
template <class T> [[gnu::noinline]] T log_prob_of(softmax_sums<T> const& row, T logit, T inverse_temperature) {
  return fma(logit - row.max, inverse_temperature, -row.log_sum);
}
}  // namespace weft::kernels
