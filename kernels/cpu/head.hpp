// head.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/head.hpp>

namespace weft::kernels {
namespace detail {
inline constexpr size_t head_group = 64;  // rows between two calls into the loss

// With l = log p: d log p_t / d logit_j = it (1[j = t] - p_j) and dH / d logit_j = -it p_j (l_j + H)
template <class T> [[gnu::noinline]] void head_gradient_row(size_t vocab, softmax_sums<T> const& row, size_t target, T inverse_temperature,
                                                            token_gradient<T> d, T* logits /*becomes its gradient*/) {
  if (d.log_prob == 0 && d.entropy == 0) {  // a row that does not count, even one of NaN
    for (size_t j = 0; j < vocab; ++j) logits[j] = 0;
    return;
  }
  vec<T> const max = broadcast(row.max), scale = broadcast(inverse_temperature), log_sum = broadcast(row.log_sum),
               entropy = broadcast(row.entropy);
  vec<T> const d_log_prob = broadcast(d.log_prob), d_entropy = broadcast(d.entropy);
  each_vector<T>(vocab, [&](size_t j, auto at) {
    vec<T> const l = fma(at.load(logits + j) - max, scale, -log_sum);
    at.store(logits + j, -scale * exp(l) * fma(d_entropy, l + entropy, d_log_prob));
  });
  logits[target] = fma(inverse_temperature, d.log_prob, logits[target]);
}
}  // namespace detail

template <class T> void head_log_probs(cpu_context& on, size_t rows, size_t width, size_t vocab, T const* hidden, T const* weight,
                                       i32 const* targets, T const* inverse_temperature, size_t chunk, T* logits, T* log_prob, T* entropy) {
  for (size_t first = 0; first < rows; first += chunk) {
    size_t const count = rows - first < chunk ? rows - first : chunk;
    gemm_nt(on, count, vocab, width, hidden + first * width, width, weight, width, logits, vocab, false);
    parallel_for(on, count, 1, [=](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        T const it = inverse_temperature[first + r];
        auto const row = softmax_row(vocab, logits + r * vocab, it);
        log_prob[first + r] = log_prob_of(row, logits[r * vocab + static_cast<size_t>(targets[first + r])], it);
        entropy[first + r] = row.entropy;
      }
    });
  }
}

template <class T> void head_loss(cpu_context& on, size_t rows, size_t width, size_t vocab, T const* hidden, T const* weight,
                                  i32 const* targets, T const* inverse_temperature, size_t chunk, T* logits,
                                  std::type_identity_t<row_loss<T>> loss, T* log_prob, T* entropy, T* dhidden, T* dweight) {
  for (size_t first = 0; first < rows; first += chunk) {
    size_t const count = rows - first < chunk ? rows - first : chunk;
    gemm_nt(on, count, vocab, width, hidden + first * width, width, weight, width, logits, vocab, false);
    for (size_t g = 0; g < count; g += detail::head_group) {
      size_t const group = count - g < detail::head_group ? count - g : detail::head_group, row0 = first + g;
      T* const x = logits + g * vocab;
      softmax_sums<T> sums[detail::head_group];
      token_gradient<T> d[detail::head_group];
      parallel_for(on, group, 1, [&](size_t begin, size_t end) {
        for (size_t r = begin; r < end; ++r) {
          sums[r] = softmax_row(vocab, x + r * vocab, inverse_temperature[row0 + r]);
          log_prob[row0 + r] = log_prob_of(sums[r], x[r * vocab + static_cast<size_t>(targets[row0 + r])], inverse_temperature[row0 + r]);
          entropy[row0 + r] = sums[r].entropy;
        }
      });
      for (size_t r = 0; r < group; ++r) d[r] = loss.call(loss.callable, row0 + r, log_prob[row0 + r], entropy[row0 + r]);
      parallel_for(on, group, 1, [&](size_t begin, size_t end) {
        for (size_t r = begin; r < end; ++r)
          detail::head_gradient_row(vocab, sums[r], static_cast<size_t>(targets[row0 + r]), inverse_temperature[row0 + r], d[r],
                                    x + r * vocab);
      });
    }
    gemm_nn(on, count, width, vocab, logits, vocab, weight, width, dhidden + first * width, width, false);
    gemm_tn(on, vocab, width, count, logits, vocab, hidden + first * width, width, dweight, width, true);
  }
}
}  // namespace weft::kernels
