// sampling.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/softmax.hpp>
#include <weft/kernels/sampling.hpp>

namespace weft::kernels {
namespace detail {
// room := scores; ids that may not be drawn get -infinity
template <class T>
[[gnu::noinline]] void token_scores(size_t vocab, T const* logits, token_rules const& rules, T inverse_temperature, T* room) {
  size_t const limit = static_cast<size_t>(rules.vocab_limit) < vocab ? static_cast<size_t>(rules.vocab_limit) : vocab;
  for (size_t i = 0; i < limit; ++i) room[i] = logits[i];
  for (i32 b = 0; b < rules.bias_count; ++b)
    if (static_cast<size_t>(rules.bias_ids[b]) < limit) room[rules.bias_ids[b]] += static_cast<T>(rules.bias[b]);
  for (size_t i = 0; i < limit; ++i) room[i] *= inverse_temperature;
  for (i32 f = 0; f < rules.forbidden_count; ++f)
    if (static_cast<size_t>(rules.forbidden[f]) < limit) room[rules.forbidden[f]] = -infinity<T>;
  for (size_t i = limit; i < vocab; ++i) room[i] = -infinity<T>;
}

template <class T> struct kept_set {
  T least;
  size_t ties;
};  // scores above `least`, and the first `ties` that equal it

template <class T> void sift_down(T* heap, size_t size, size_t i) {
  for (size_t child; (child = 2 * i + 1) < size; i = child) {
    if (child + 1 < size && heap[child + 1] > heap[child]) ++child;
    if (heap[i] >= heap[child]) return;
    T const lower = heap[i];
    heap[i] = heap[child], heap[child] = lower;
  }
}
// Takes scores from the top until a filter says enough; room is used up: a heap in front, what was taken behind it, best last.
template <class T> kept_set<T> filter(size_t vocab, T* room, sampling const& how) {
  for (size_t i = vocab / 2; i-- > 0;) sift_down(room, vocab, i);
  size_t size = vocab;
  auto const some = [&] { return size > 0 && room[0] > -infinity<T>; };
  auto const take = [&] {
    T const score = room[0];
    room[0] = room[--size], room[size] = score;
    sift_down(room, size, 0);
  };
  bool const ranked = how.top_k >= 1 && static_cast<size_t>(how.top_k) < vocab;
  T const best = room[0], floor = how.min_p > 0 ? best + std::log(static_cast<T>(how.min_p)) : -infinity<T>;
  T mass = 0, taken = 0;  // of what top_k leaves, and of what is kept so far
  if (ranked) {
    while (some() && vocab - size < static_cast<size_t>(how.top_k)) take(), mass += std::exp(room[size] - best);
  } else {
    vec<T> sum{};
    each_vector<T>(vocab, [&](size_t i, auto at) { sum += at.or_else(exp(at.load(room + i) - broadcast(best)), T(0)); });
    mass = sum_of<T>(sum);
  }
  kept_set<T> kept{best, 0};
  for (size_t i = vocab; i-- > 0;) {
    if (i < size && (ranked || !some())) break;
    if (i < size) take();
    if (room[i] < floor || (i + 1 < vocab && taken >= static_cast<T>(how.top_p) * mass)) break;
    taken += std::exp(room[i] - best);
    kept = {room[i], room[i] == kept.least ? kept.ties + 1 : 1};
  }
  return kept;
}
// room := -infinity outside the kept set
template <class T> void keep_only(size_t vocab, kept_set<T> kept, T* room) {
  for (size_t i = 0, ties = 0; i < vocab; ++i)
    if (room[i] < kept.least || (room[i] == kept.least && ties++ >= kept.ties)) room[i] = -infinity<T>;
}

// log softmax(score)[id]
template <class T> T kept_log_prob(size_t vocab, T const* score, i32 id) {
  vec<T> most = broadcast(-infinity<T>), sum{};
  each_vector<T>(vocab, [&](size_t i, auto at) { most = maximum<T>(at.or_else(at.load(score + i), -infinity<T>), most); });
  T const max = maximum_of<T>(most);
  each_vector<T>(vocab, [&](size_t i, auto at) { sum += at.or_else(exp(at.load(score + i) - broadcast(max)), T(0)); });
  return score[id] - max - std::log(sum_of<T>(sum));
}

inline constexpr size_t noise_ids = 64;
// u[64]: the uniform draws of ids [64 block, 64 block + 64): word i % 4 of the counter whose first element is i / 4, sixteen counters side
// by side
template <class T> void uniform_noise(size_t block, philox_words counter, u64 seed, T* u) {
  constexpr size_t n = noise_ids / 4;
  u32 c[4][n], k0 = static_cast<u32>(seed), k1 = static_cast<u32>(seed >> 32);
  for (size_t j = 0; j < n; ++j) {
    c[0][j] = static_cast<u32>(block * n + j);
    for (size_t w = 1; w < 4; ++w) c[w][j] = counter.word[w];
  }
  for (int round = 0; round < philox_rounds; ++round, k0 += philox_weyl_low, k1 += philox_weyl_high)
    for (size_t j = 0; j < n; ++j) {
      philox_words const x = philox_round({{c[0][j], c[1][j], c[2][j], c[3][j]}}, k0, k1);
      for (size_t w = 0; w < 4; ++w) c[w][j] = x.word[w];
    }
  for (size_t j = 0; j < n; ++j)
    for (size_t w = 0; w < 4; ++w) u[4 * j + w] = static_cast<T>(uniform(c[w][j]));
}
// argmax of score + Gumbel noise; -1 if every score is -infinity
template <class T> i32 gumbel_argmax(size_t vocab, T const* score, philox_words counter, u64 seed) {
  i32 id = -1;
  T best = -infinity<T>, u[noise_ids];
  for (size_t first = 0; first < vocab; first += noise_ids) {
    size_t const count = vocab - first < noise_ids ? vocab - first : noise_ids;
    uniform_noise(first / noise_ids, counter, seed, u);
    each_vector<T>(count, [&](size_t i, auto at) { at.store(u + i, at.load(score + first + i) - log(-log(load(u + i)))); });
    for (size_t i = 0; i < count; ++i)
      if (u[i] > best) best = u[i], id = static_cast<i32>(first + i);
  }
  return id;
}
template <class T> i32 argmax(size_t vocab, T const* score) {
  i32 id = -1;
  T best = -infinity<T>;
  for (size_t i = 0; i < vocab; ++i)
    if (score[i] > best) best = score[i], id = static_cast<i32>(i);
  return id;
}
}  // namespace detail

template <class T> drawn<T> sample_row(size_t vocab, T const* logits, T* room, sampling const& how, token_rules const& rules, u64 seed,
                                       u32 draw, u32 sample, u32 position) {
  T const it = inverse_temperature_of<T>(how);
  softmax_sums<T> const row = softmax_row(vocab, logits, it);
  drawn<T> const none{-1, row.entropy, row.entropy, row.entropy};
  if (row.entropy != row.entropy) return none;
  bool const greedy = !(how.temperature > 0), filtered = !greedy && (how.top_k >= 1 || how.top_p < 1 || how.min_p > 0);
  bool const ruled = rules.bias_count > 0 || rules.forbidden_count > 0 || static_cast<size_t>(rules.vocab_limit) < vocab;
  detail::token_scores(vocab, logits, rules, it, room);
  if (filtered) {
    detail::kept_set<T> const kept = detail::filter(vocab, room, how);
    detail::token_scores(vocab, logits, rules, it, room);
    detail::keep_only(vocab, kept, room);
  }
  i32 const id = greedy ? detail::argmax(vocab, room) : detail::gumbel_argmax(vocab, room, {{0, position, sample, draw}}, seed);
  if (id < 0) return none;
  T const log_prob = log_prob_of(row, logits[id], it);
  if (greedy || !(filtered || ruled)) return {id, log_prob, 0, row.entropy};
  return {id, log_prob, log_prob - detail::kept_log_prob(vocab, room, id), row.entropy};
}
}  // namespace weft::kernels
