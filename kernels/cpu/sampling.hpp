// sampling.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/softmax.hpp>
#include <weft/kernels/sampling.hpp>

namespace weft::kernels {
namespace detail {
// room := scores; ids that may not be drawn get -infinity
template <class T> [[gnu::noinline]] void token_scores(size_t vocab, T const* logits, token_rules const& rules, T inverse_temperature, T* room) {
  size_t const limit = static_cast<size_t>(rules.vocab_limit) < vocab ? static_cast<size_t>(rules.vocab_limit) : vocab;
  for (size_t i = 0; i < limit; ++i) room[i] = logits[i];
  for (i32 b = 0; b < rules.bias_count; ++b)
    if (static_cast<size_t>(rules.bias_ids[b]) < limit) room[rules.bias_ids[b]] += static_cast<T>(rules.bias[b]);
  for (size_t i = 0; i < limit; ++i) room[i] *= inverse_temperature;
  for (i32 f = 0; f < rules.forbidden_count; ++f)
    if (static_cast<size_t>(rules.forbidden[f]) < limit) room[rules.forbidden[f]] = -infinity<T>;
  for (size_t i = limit; i < vocab; ++i) room[i] = -infinity<T>;
}

template <class T> struct kept_set { T least; size_t ties; };  // scores above `least`, and the first `ties` that equal it

template <class T> void sift_down(T* heap, size_t size, size_t i) {
  for (size_t child; (child = 2 * i + 1) < size; i = child) {
    if (child + 1 < size && heap[child + 1] > heap[child]) ++child;
    if (heap[i] >= heap[child]) return;
    T const lower = heap[i];
    heap[i] = heap[child], heap[child] = lower;
  }
}
// Takes scores from the top until a filter says enough; room is used up.
template <class T> kept_set<T> filter(size_t vocab, T* room, sampling const& how) {
  for (size_t i = vocab / 2; i-- > 0;) sift_down(room, vocab, i);
  size_t const most = how.top_k >= 1 && static_cast<size_t>(how.top_k) < vocab ? static_cast<size_t>(how.top_k) : vocab;
  T const best = room[0], floor = how.min_p > 0 ? best + std::log(static_cast<T>(how.min_p)) : -infinity<T>;
  // the best `most` scores go to the end of room, falling towards the front; their mass is the whole that top_p speaks of
  T mass = 0, taken = 0;
  size_t size = vocab;
  while (vocab - size < most && room[0] > -infinity<T>) {
    T const score = room[0];
    room[0] = room[--size], room[size] = score;
    sift_down(room, size, 0);
    mass += std::exp(score - best);
    if (size == 0) break;
  }
  kept_set<T> kept{best, 0};
  for (size_t i = vocab; i-- > size;) {
    if (room[i] < floor || (i + 1 < vocab && taken >= static_cast<T>(how.top_p) * mass)) break;
    taken += std::exp(room[i] - best);
    kept = {room[i], room[i] == kept.least ? kept.ties + 1 : 1};
  }
  return kept;
}
}  // namespace detail

template <class T> drawn<T> sample_row(size_t vocab, T const* logits, T* room, sampling const& how, token_rules const& rules, u64 seed, u32 draw, u32 sample,
                                       u32 position) {
  T const it = inverse_temperature_of<T>(how);
  softmax_sums<T> const row = softmax_row(vocab, logits, it);
  if (row.entropy != row.entropy) return {-1, row.entropy, row.entropy, row.entropy};
  bool const greedy = !(how.temperature > 0), filtered = !greedy && (how.top_k >= 1 || how.top_p < 1 || how.min_p > 0);
  detail::kept_set<T> kept{-infinity<T>, 0};
  if (filtered) {
    detail::token_scores(vocab, logits, rules, it, room);
    kept = detail::filter(vocab, room, how);
  }
  detail::token_scores(vocab, logits, rules, it, room);

  i32 id = -1;
  T best = -infinity<T>, max = -infinity<T>, sum = 0;
  philox_words noise{};
  for (size_t i = 0, ties = 0; i < vocab; ++i) {
    if (!greedy && i % 4 == 0) noise = philox({{static_cast<u32>(i / 4), position, sample, draw}}, seed);
    if (room[i] == kept.least && ties++ >= kept.ties) room[i] = -infinity<T>;
    if (room[i] < kept.least || !(room[i] > -infinity<T>)) { room[i] = -infinity<T>; continue; }
    T const value = greedy ? room[i] : room[i] - std::log(-std::log(static_cast<T>(uniform(noise.word[i % 4]))));
    if (id < 0 || value > best) best = value, id = static_cast<i32>(i);
    max = room[i] > max ? room[i] : max;
  }
  if (id < 0) return {-1, row.entropy, row.entropy, row.entropy};
  T const log_prob = log_prob_of(row, logits[id], it);
  bool const whole = !filtered && rules.bias_count == 0 && rules.forbidden_count == 0 && static_cast<size_t>(rules.vocab_limit) >= vocab;
  if (greedy || whole) return {id, log_prob, 0, row.entropy};
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(room[i] - max);
  return {id, log_prob, log_prob - ((room[id] - max) - std::log(sum)), row.entropy};
}
}  // namespace weft::kernels
