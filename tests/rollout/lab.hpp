// A tiny random model, requests over random prompts, and what a training forward says about the samples.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <weft/kernels/head.hpp>
#include <weft/model/initialise.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/rollout/generate.hpp>

namespace lab {
using namespace weft;

inline model::config tiny_config(i32 max_positions = 256) {
  model::config c;
  c.layers = 2, c.hidden = 32, c.intermediate = 48, c.heads = 4, c.kv_heads = 2, c.head_dim = 8, c.vocab = 61,
  c.max_positions = max_positions;
  return c;
}

template <class T> struct tiny {
  model::config config = tiny_config();
  std::vector<T> rope, weights;
  explicit tiny(u64 seed = 1, model::config const& c = tiny_config()) : config{c} {
    rope.resize(size_t(config.max_positions * config.head_dim));
    weights.resize(model::parameter_count(config));
    model::fill_rope_table(config, size_t(config.max_positions), rope.data());
    model::initialise(config, seed, weights.data());
    for (T& w : weights)
      if (w != 1) w *= 12;  // far from uniform
  }
  rollout::policy<T> policy() const { return {&config, rope.data(), weights.data()}; }
};

// Prompts, parameters and rules with their memory.
template <class T> struct job {
  i32 prompts, group, prompt_capacity = 160, capacity = 40;
  std::vector<i32> ids, lengths;
  std::vector<u32> draws;
  std::vector<kernels::sampling> sampling{kernels::sampling{}};
  std::vector<i32> stop_ids, bias_ids;
  std::vector<f32> bias;
  u64 seed = 7;
  rollout::byte_strings strings, tokens;
  rollout::observer<T> watch;
  i32 sampled_ids = 0;

  job(i32 prompt_count, i32 samples, std::vector<i32> const& some_lengths, u32 seed_of_prompts = 3)
      : prompts{prompt_count}, group{samples} {
    std::mt19937 random{seed_of_prompts};
    ids.assign(size_t(prompts * prompt_capacity), 60);
    for (i32 p = 0; p < prompts; ++p) {
      lengths.push_back(some_lengths[size_t(p) % some_lengths.size()]);
      draws.push_back(u32(100 + p));
      for (i32 k = 0; k < lengths.back(); ++k) ids[size_t(p * prompt_capacity + k)] = i32(random() % 61);
    }
  }
  rollout::request<T> request() const {
    rollout::request<T> r;
    r.prompts = prompts, r.group = group, r.prompt_capacity = prompt_capacity, r.prompt_ids = ids.data(), r.prompt_lengths = lengths.data();
    r.draws = draws.data(), r.seed = seed, r.sampling = sampling.data(), r.sampling_count = i32(sampling.size()),
    r.sampled_ids = sampled_ids;
    r.bias_ids = bias_ids.data(), r.bias = bias.data(), r.bias_count = i32(bias.size());
    r.stop = {stop_ids.data(), i32(stop_ids.size()), strings, tokens};
    r.watch = watch;
    return r;
  }
};

template <class T> struct result {
  i32 capacity;
  std::vector<i32> ids;
  std::vector<T> log_probs, log_kept, entropies;
  std::vector<i32> lengths;
  std::vector<rollout::finish> reasons;
  rollout::counters count;
  rollout::outputs<T> outputs() {
    return {ids.data(), log_probs.data(), log_kept.data(), entropies.data(), lengths.data(), reasons.data(), capacity};
  }
  std::vector<i32> response(size_t sample) const {
    auto const first = ids.begin() + std::ptrdiff_t(sample * size_t(capacity));
    return {first, first + lengths[sample]};
  }
};

// All memory full of garbage (NaN, wild indices) before.
template <class V> void poison(std::vector<V>& v, int byte) {
  if (!v.empty()) std::memset(static_cast<void*>(v.data()), byte, v.size() * sizeof(V));
}
template <class T, class Kv> struct memory {
  std::vector<i32> ints;
  std::vector<T> reals, logits;
  std::vector<Kv> pool;
  memory(rollout::settings const& s, model::config const& c, int byte = 0xff) {
    auto const n = rollout::workspace_sizes_of<Kv>(s, c);
    ints.resize(n.ints), reals.resize(n.reals), logits.resize(n.logits), pool.resize(n.pool);
    poison(ints, byte), poison(reals, byte), poison(logits, byte), poison(pool, byte);
  }
  rollout::workspace<T, Kv> view() { return {ints.data(), reals.data(), logits.data(), pool.data()}; }
};

template <class T> result<T> room_for(job<T> const& j) {
  size_t const samples = size_t(j.prompts * j.group), tokens = samples * size_t(j.capacity);
  result<T> r{j.capacity,
              std::vector<i32>(tokens),
              std::vector<T>(tokens),
              std::vector<T>(tokens),
              std::vector<T>(tokens),
              std::vector<i32>(samples),
              std::vector<rollout::finish>(samples),
              {}};
  poison(r.ids, 0xff), poison(r.log_probs, 0xff), poison(r.log_kept, 0xff), poison(r.entropies, 0xff), poison(r.lengths, 0xff),
      poison(r.reasons, 0xff);
  return r;
}
template <class Kv, class T>
result<T> run(tiny<T> const& m, job<T> const& j, rollout::settings const& s, size_t threads = 1, int garbage = 0xff) {
  kernels::threads pool{threads};
  kernels::cpu_context on{threads > 1 ? &pool : nullptr};
  memory<T, Kv> w{s, m.config, garbage};
  result<T> r = room_for(j);
  r.count = rollout::generate<T, Kv>(on, m.policy(), j.request(), s, r.outputs(), w.view());
  return r;
}
inline rollout::settings settings_for(i32 slots, i32 pages, i32 batched_tokens = 64, i32 context = 200, i32 head_rows = 5) {
  return {slots, batched_tokens, context, pages, head_rows};
}

template <class V> bool same_bits(std::vector<V> const& a, std::vector<V> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}
template <class T> bool same(result<T> const& a, result<T> const& b) {
  return a.ids == b.ids && same_bits(a.log_probs, b.log_probs) && same_bits(a.log_kept, b.log_kept) &&
         same_bits(a.entropies, b.entropies) && a.lengths == b.lengths && a.reasons == b.reasons;
}

// log-probs and entropies [samples, capacity] by the training forward over prompt + response, `packed` samples to a batch, head in chunks of `chunk` rows.
template <class T> struct judged { std::vector<T> log_probs, entropies; };
template <class T>
judged<T> judge(tiny<T> const& m, job<T> const& j, result<T> const& r, size_t packed, size_t chunk, bool mirrored = false) {
  kernels::cpu_context on;
  judged<T> out{std::vector<T>(r.log_probs.size()), std::vector<T>(r.entropies.size())};
  size_t const samples = r.lengths.size(), width = size_t(m.config.hidden), vocab = size_t(m.config.vocab);
  std::vector<T> head(model::head_weight(m.config, m.weights.data()), model::head_weight(m.config, m.weights.data()) + vocab * width);
  if (mirrored)
    for (size_t i = 0; i < vocab; ++i)
      std::reverse(head.begin() + std::ptrdiff_t(i * width), head.begin() + std::ptrdiff_t((i + 1) * width));
  for (size_t first = 0; first < samples; first += packed) {
    std::vector<i32> ids, positions, cu{0}, targets;
    std::vector<size_t> rows, places;
    std::vector<T> inverse;
    for (size_t i = first; i < std::min(samples, first + packed); ++i) {
      size_t const p = i / size_t(j.group), length = size_t(j.lengths[p]), total = length + size_t(r.lengths[i]);
      auto const& how = rollout::sampling_of(j.request(), i);
      for (size_t k = 0; k + 1 < total; ++k) {  // the last token predicts nothing
        if (k + 1 >= length) {
          rows.push_back(ids.size()), places.push_back(i * size_t(r.capacity) + k + 1 - length);
          targets.push_back(r.ids[places.back()]), inverse.push_back(kernels::inverse_temperature_of<T>(how));
        }
        ids.push_back(k < length ? j.ids[p * size_t(j.prompt_capacity) + k] : r.ids[i * size_t(r.capacity) + k - length]);
        positions.push_back(i32(k));
      }
      cu.push_back(i32(ids.size()));
    }
    std::vector<T> room(model::activation_count(m.config, ids.size(), false)), hidden(ids.size() * width), read(rows.size() * width),
        logits(chunk * vocab);
    model::forward(on, m.config, false, m.rope.data(), m.weights.data(),
                   model::batch_view{ids.data(), positions.data(), cu.data(), i32(ids.size()), i32(cu.size() - 1)}, room.data(),
                   hidden.data());
    for (size_t k = 0; k < rows.size(); ++k)
      for (size_t d = 0; d < width; ++d) read[k * width + d] = hidden[rows[k] * width + (mirrored ? width - 1 - d : d)];
    std::vector<T> log_prob(rows.size()), entropy(rows.size());
    kernels::head_log_probs(on, rows.size(), width, vocab, read.data(), head.data(), targets.data(), inverse.data(), chunk, logits.data(),
                            log_prob.data(), entropy.data());
    for (size_t k = 0; k < rows.size(); ++k) out.log_probs[places[k]] = log_prob[k], out.entropies[places[k]] = entropy[k];
  }
  return out;
}
template <class T> bool exact(tiny<T> const& m, job<T> const& j, result<T> const& r, size_t packed = 3, size_t chunk = 16) {
  judged<T> const said = judge(m, j, r, packed, chunk);
  return same_bits(said.log_probs, r.log_probs) && same_bits(said.entropies, r.entropies);
}
}  // namespace lab
