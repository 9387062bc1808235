// group_advantage.hpp — advantages from the scores of n answers to one prompt. One group at a time:
//   score [n], scored [n] (0: no score, the answer is left out of the group and gets 0; null: all are scored), advantage [n].
// Equal scores give exactly 0. A group of one configured so (n = 1) keeps its score as verl does; a group left with fewer than
// two scored answers gets 0 and `group_dropped` is returned, to be counted.
#pragma once
#include <cmath>
#include "../element.hpp"

namespace weft::objective {
enum class group_result : i32 { used = 0, dropped = 1 };

struct group_settings {
  double epsilon = 1e-6;    // added to the standard deviation (TRL: 1e-4)
  bool norm_by_std = true;  // false: Dr. GRPO
  bool population = false;  // standard deviation over n in place of n - 1 (Megatron-RL)
};

namespace detail {
struct group_sums {
  size_t count = 0;
  double mean = 0, squares = 0;
  bool equal = true;
};

template <class T> WEFT_HD bool counts_in(i32 const* scored, size_t j) { return !scored || scored[j] != 0; }

template <class T> WEFT_HD group_sums sums_of(size_t n, T const* score, i32 const* scored) {
  group_sums g;
  double first = 0;
  for (size_t j = 0; j < n; ++j)
    if (counts_in<T>(scored, j)) {
      if (g.count++ == 0) first = double(score[j]);
      g.equal = g.equal && double(score[j]) == first;
      g.mean += double(score[j]);
    }
  if (g.count > 0) g.mean /= double(g.count);
  for (size_t j = 0; j < n; ++j)
    if (counts_in<T>(scored, j)) g.squares += (double(score[j]) - g.mean) * (double(score[j]) - g.mean);
  return g;
}

// advantage = of(score) for the scored answers of a usable group; lone(score) where n = 1
template <class T, class Of, class Lone>
WEFT_HD group_result fill_group(size_t n, T const* score, i32 const* scored, group_sums const& g, T* advantage, Of of, Lone lone) {
  bool const dropped = n > 1 && g.count < 2;
  for (size_t j = 0; j < n; ++j)
    advantage[j] = dropped || !counts_in<T>(scored, j) ? T(0)
                   : n == 1                            ? T(lone(double(score[j])))
                   : g.equal                           ? T(0)
                                                       : T(of(double(score[j]), j));
  return dropped ? group_result::dropped : group_result::used;
}
}  // namespace detail

// GRPO: (s - mean) / (std + epsilon), or s - mean
template <class T> WEFT_HD group_result grpo(group_settings const& o, size_t n, T const* score, i32 const* scored, T* advantage) {
  auto const g = detail::sums_of(n, score, scored);
  double const deviation = g.count > 1 ? std::sqrt(g.squares / double(o.population ? g.count : g.count - 1)) : 1;
  double const k = o.norm_by_std ? 1 / (deviation + o.epsilon) : 1, lone = o.norm_by_std ? 1 / (1 + o.epsilon) : 1;
  return detail::fill_group(
      n, score, scored, g, advantage, [&](double s, size_t) { return (s - g.mean) * k; }, [&](double s) { return s * lone; });
}

// s - mean: Dr. GRPO, the baseline of REINFORCE++ and of reinforce
template <class T> WEFT_HD group_result centred(size_t n, T const* score, i32 const* scored, T* advantage) {
  group_settings o;
  o.norm_by_std = false;
  return grpo(o, n, score, scored, advantage);
}

// RLOO: s minus the mean of the others = n / (n - 1) (s - mean)
template <class T> WEFT_HD group_result rloo(size_t n, T const* score, i32 const* scored, T* advantage) {
  auto const g = detail::sums_of(n, score, scored);
  double const k = g.count > 1 ? double(g.count) / double(g.count - 1) : 1;
  return detail::fill_group(
      n, score, scored, g, advantage, [&](double s, size_t) { return (s - g.mean) * k; }, [](double s) { return s; });
}

// OPO: s minus the mean weighted by length [n]
template <class T> WEFT_HD group_result opo(size_t n, T const* score, i32 const* length /*[n]*/, i32 const* scored, T* advantage) {
  auto const g = detail::sums_of(n, score, scored);
  double sum = 0, weight = 0;
  for (size_t j = 0; j < n; ++j)
    if (detail::counts_in<T>(scored, j)) sum += double(length[j]) * double(score[j]), weight += double(length[j]);
  double const baseline = weight > 0 ? sum / weight : 0;
  return detail::fill_group(
      n, score, scored, g, advantage, [&](double s, size_t) { return s - baseline; }, [](double s) { return s; });
}

// GPG: alpha (s - mean) / f_norm, alpha = answers of the batch / answers with a score other than 0 (1 if there are none)
template <class T> WEFT_HD group_result gpg(double alpha, double f_norm, size_t n, T const* score, i32 const* scored, T* advantage) {
  auto const g = detail::sums_of(n, score, scored);
  double const k = alpha / f_norm;
  return detail::fill_group(
      n, score, scored, g, advantage, [&](double s, size_t) { return (s - g.mean) * k; }, [&](double s) { return s * k; });
}

// pass@k: the best answer gets its lead over the second best (by the standard deviation), all others 0
template <class T> WEFT_HD group_result grpo_passk(group_settings const& o, size_t n, T const* score, i32 const* scored, T* advantage) {
  auto const g = detail::sums_of(n, score, scored);
  size_t best = n;
  for (size_t j = 0; j < n; ++j)
    if (detail::counts_in<T>(scored, j) && (best == n || score[j] > score[best])) best = j;
  double second = 0;
  bool any = false;
  for (size_t j = 0; j < n; ++j)
    if (j != best && detail::counts_in<T>(scored, j) && (!any || double(score[j]) > second)) second = double(score[j]), any = true;
  double const k = o.norm_by_std && g.count > 1 ? 1 / (std::sqrt(g.squares / double(g.count - 1)) + o.epsilon) : 1;
  return detail::fill_group(
      n, score, scored, g, advantage, [&](double s, size_t j) { return j == best ? (s - second) * k : 0.0; }, [](double s) { return s; });
}

// GDPO: grpo of each of `components` rewards, added up with weights; verl then whitens over the batch. score [components, n]; scored,
// where not null, [components, n]: a reward that does not apply to an answer is left out of its group. one: scratch [n].
template <class T> WEFT_HD group_result gdpo(group_settings const& o, size_t components, double const* weight, size_t n, T const* score,
                                             i32 const* scored, T* one, T* advantage) {
  bool used = false;
  for (size_t j = 0; j < n; ++j) advantage[j] = T(0);
  for (size_t c = 0; c < components; ++c) {
    used = (grpo(o, n, score + c * n, scored ? scored + c * n : nullptr, one) == group_result::used) || used;
    for (size_t j = 0; j < n; ++j) advantage[j] += T(weight[c]) * one[j];
  }
  return used ? group_result::used : group_result::dropped;
}
}  // namespace weft::objective
