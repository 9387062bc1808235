// distill.hpp (cpu)
#pragma once
#include <cmath>
#include <limits>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/distill.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
namespace detail {
// The largest x that at least `best` of the numbers reach, by bisection between the least and the largest.
template <class T> T threshold_of_best(size_t n, T const* x, size_t best) {
  T low = x[0], high = x[0];
  for (size_t i = 1; i < n; ++i) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
  auto const reach = [&](T limit) {
    size_t count = 0;
    for (size_t i = 0; i < n; ++i) count += x[i] >= limit;
    return count;
  };
  if (reach(high) >= best) return high;
  for (T middle; (middle = low + (high - low) / 2) > low && middle < high;) (reach(middle) >= best ? low : high) = middle;
  return low;
}
// x and y [vocab]: logits of student and teacher. x becomes p_j, y becomes the log ratio of j or of its bucket; returns the KL.
template <class T> double reverse_kl_row(size_t vocab, T* x, T* y, size_t best) {
  auto const p = softmax_row(vocab, x, T(1)), q = softmax_row(vocab, y, T(1));
  bool const all = best == 0 || best >= vocab;
  T const limit = all ? 0 : threshold_of_best(vocab, y, best);
  double kl = 0, p_rest = 0, q_rest = 0;
  size_t left = best;
  for (size_t j = 0; j < vocab; ++j) {
    T const log_p = log_prob_of(p, x[j], T(1)), log_q = log_prob_of(q, y[j], T(1));
    bool const chosen = all || (left > 0 && y[j] >= limit);  // equal ones: the first
    left -= !all && chosen;
    x[j] = std::exp(log_p);
    if (chosen) {
      y[j] = log_p - log_q;
      kl += double(x[j]) * double(y[j]);
    } else {
      p_rest += double(x[j]), q_rest += std::exp(double(log_q));
      y[j] = std::numeric_limits<T>::infinity();  // in the bucket
    }
  }
  if (all) return kl;
  double const ratio = p_rest > 0 ? std::log(p_rest) - std::log(q_rest > 1e-30 ? q_rest : 1e-30) : 0;
  for (size_t j = 0; j < vocab; ++j)
    if (y[j] == std::numeric_limits<T>::infinity()) y[j] = T(ratio);
  return kl + p_rest * ratio;
}
}  // namespace detail

template <class T> void head_reverse_kl(cpu_context& on, size_t rows, size_t vocab, head_input<T> student, head_input<T> teacher,
                                        size_t best, size_t chunk, T* logits, std::type_identity_t<kl_loss<T>> loss, T* kl, T* dhidden,
                                        T* dweight) {
  for (size_t first = 0; first < rows; first += chunk) {
    size_t const count = rows - first < chunk ? rows - first : chunk, width = student.width;
    T *const x = logits, *const y = logits + chunk * vocab;
    T const* const hidden = student.hidden + first * width;
    gemm_nt(on, count, vocab, width, hidden, width, student.weight, width, x, vocab, false);
    gemm_nt(on, count, vocab, teacher.width, teacher.hidden + first * teacher.width, teacher.width, teacher.weight, teacher.width, y, vocab,
            false);
    parallel_for(on, count, 1, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) kl[first + r] = T(detail::reverse_kl_row(vocab, x + r * vocab, y + r * vocab, best));
    });
    for (size_t r = 0; r < count; ++r) {  // d KL / d logit_j = p_j (log ratio_j - KL)
      T const d = loss.call(loss.callable, first + r, kl[first + r]), mean = kl[first + r];
      for (size_t j = r * vocab; j < (r + 1) * vocab; ++j) x[j] = d == 0 ? T(0) : d * x[j] * (y[j] - mean);
    }
    gemm_nn(on, count, width, vocab, x, vocab, student.weight, width, dhidden + first * width, width, false);
    gemm_tn(on, vocab, width, count, x, vocab, hidden, width, dweight, width, true);
  }
}
}  // namespace weft::kernels
