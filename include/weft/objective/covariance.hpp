// covariance.hpp — Clip-Cov and KL-Cov (arXiv:2505.22617): a few tokens with a high covariance (A - mean A)(lp - mean lp) are treated apart,
// since they lose most of the entropy. Which ones is decided by a pass over the whole mini-batch before the gradient pass, so that no
// cut into micro-batches changes it:
//   kl_cov    the ratio tokens with the highest covariance get + ppo_kl_coef |lp - old|
//   clip_cov  of the tokens with low < covariance < high that PPO does not clip, a random share `ratio` of all tokens gets no gradient
#pragma once
#include "term.hpp"

namespace weft::objective {
struct covariance_means {
  double advantage = 0, log_prob = 0;
};  // over the tokens of the mini-batch that count

template <class T> WEFT_HD T covariance(covariance_means const& mean, token<T> const& t) {
  return (t.advantage - T(mean.advantage)) * (t.detached - T(mean.log_prob));
}

// selected[i] = 1 for the `most` eligible tokens with the highest rank; equal ranks: the first. rank: the covariance (kl_cov) or a
// random number of the token (clip_cov). A binary heap of the best so far lies in heap [most].
template <class T>
WEFT_HD void select_highest(size_t n, T const* rank /*[n]*/, i32 const* eligible /*[n]*/, size_t most, i32* heap, i32* selected /*[n]*/) {
  auto before = [&](i32 a, i32 b) { return rank[a] < rank[b] || (rank[a] == rank[b] && a > b); };  // a leaves before b
  size_t size = 0;
  auto swap = [&](size_t i, size_t j) {
    i32 const x = heap[i];
    heap[i] = heap[j], heap[j] = x;
  };
  auto sink = [&] {
    for (size_t i = 0, child; (child = 2 * i + 1) < size; i = child) {
      if (child + 1 < size && before(heap[child + 1], heap[child])) ++child;
      if (!before(heap[child], heap[i])) return;
      swap(i, child);
    }
  };
  for (size_t i = 0; i < n; ++i) {
    selected[i] = 0;
    if (eligible[i] == 0 || most == 0) continue;
    if (size < most) {
      heap[size] = i32(i);
      for (size_t at = size++; at > 0 && before(heap[at], heap[(at - 1) / 2]); at = (at - 1) / 2) swap(at, (at - 1) / 2);
    } else if (before(heap[0], i32(i))) {
      heap[0] = i32(i);
      sink();
    }
  }
  for (size_t i = 0; i < size; ++i) selected[heap[i]] = 1;
}
WEFT_HD inline size_t covariance_share(double ratio, std::int64_t tokens) {  // at least one token
  auto const share = size_t(ratio * double(tokens));
  return share > 0 ? share : 1;
}

struct kl_cov : token_term<> {
  static constexpr char const* name = "actor/pg_loss";
  double ratio = 2e-4, ppo_kl_coef = 1;

  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    T const l = t.log_prob - t.old_log_prob, free = -t.advantage * std::exp(l);
    T const k = t.selected != 0 ? T(ppo_kl_coef) : T(0), side = l > 0 ? T(1) : l < 0 ? T(-1) : T(0);
    return scaled(t.rollout_weight, token_loss<T>{free + k * side * l, free + k * side, 0});
  }
  static constexpr char const* metrics[] = {"actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    sums[0] += std::abs(double(t.log_prob - t.old_log_prob));
  }
};

struct clip_cov : token_term<> {
  static constexpr char const* name = "actor/pg_loss";
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;
  double ratio = 2e-4, covariance_low = 1, covariance_high = 5;

  template <class T> WEFT_HD bool bounded(token<T> const& t) const {
    T const r = std::exp(t.detached - t.old_log_prob);
    return -t.advantage * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high)) > -t.advantage * r;
  }
  template <class T> WEFT_HD bool eligible(covariance_means const& mean, token<T> const& t) const {
    T const c = covariance(mean, t);
    return c > T(covariance_low) && c < T(covariance_high) && !bounded(t);
  }
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    if (t.selected != 0) return {t.advantage * 0, 0, 0};
    T const r = std::exp(t.log_prob - t.old_log_prob), free = -t.advantage * r;
    T const bound = -t.advantage * clamp<T>(r, T(1 - clip_ratio_low), T(1 + clip_ratio_high));
    return scaled(t.rollout_weight, bound > free ? token_loss<T>{bound, 0, 0} : token_loss<T>{free, free, 0});
  }
  static constexpr char const* metrics[] = {"actor/pg_clipfrac", "actor/ppo_kl"};
  template <class T> WEFT_HD void measure(token<T> const& t, sequence<T> const&, double* sums) const {
    sums[0] += t.selected != 0;
    sums[1] += double(t.old_log_prob - t.log_prob);
  }
};
}  // namespace weft::objective
