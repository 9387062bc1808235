// support.hpp — small models of every family, random weights and packed batches, and a model with its buffers.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <weft/kernels/head.hpp>
#include <weft/model/backward.hpp>
#include <weft/model/heads.hpp>
#include <weft/model/rope_table.hpp>

namespace test {
using namespace weft;
using model::config;

struct family {
  std::string name;
  config c;
};

inline config small(i32 heads, i32 kv_heads, i32 head_dim) {
  config c;
  c.layers = 2, c.hidden = 24, c.intermediate = 40, c.heads = heads, c.kv_heads = kv_heads, c.head_dim = head_dim, c.vocab = 37,
  c.max_positions = 256;
  return c;
}

// One of each model type and of each switch, with a language model's head.
inline std::vector<family> families() {
  std::vector<family> all;
  auto const add = [&](char const* name, config c, auto change) { change(c), all.push_back({name, c}); };
  add("llama", small(4, 2, 6), [](config&) {});
  add("llama with all biases", small(3, 3, 8), [](config& c) { c.qkv_bias = c.o_bias = c.mlp_bias = true; });
  add("llama 3.1", small(4, 1, 8), [](config& c) {
    c.tied = true, c.rope_theta = 500000;
    c.rope.type = model::rope_scaling::llama3, c.rope.factor = 8, c.rope.original_max_positions = 32;
  });
  add("mistral", small(4, 2, 10), [](config& c) { c.rope_theta = 1000000, c.rms_norm_eps = 1e-5f; });
  add("qwen2", small(4, 2, 6), [](config& c) { c.qkv_bias = true; });
  add("qwen2 with yarn", small(4, 2, 6), [](config& c) {
    c.qkv_bias = c.tied = true;
    c.rope.type = model::rope_scaling::yarn, c.rope.factor = 4, c.rope.original_max_positions = 64;
  });
  add("qwen3", small(4, 2, 16), [](config& c) { c.qk_norm = c.tied = true; });
  add("qwen3, linear positions", small(6, 2, 4),
      [](config& c) { c.qk_norm = true, c.rope.type = model::rope_scaling::linear, c.rope.factor = 2; });
  return all;
}

// Weights far from the start of training, so that every term of a gradient counts. Gaps between tensors stay 0.
template <class T> std::vector<T> random_weights(config const& c, unsigned seed, double scale = 0.25) {
  std::vector<T> w(model::parameter_count(c));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  model::for_each_tensor(c, [&](model::tensor const& t) {
    bool const norm = std::string(t.name).find("norm") != std::string::npos;
    for (size_t i = 0; i < t.size(); ++i) w[t.offset + i] = T((norm ? 1 : 0) + scale * normal(random));
  });
  return w;
}

// Sequences one behind the other.
struct packed {
  std::vector<i32> ids, positions, cu_seqlens{0};
  void push(std::vector<i32> const& sequence) {
    for (size_t i = 0; i < sequence.size(); ++i) ids.push_back(sequence[i]), positions.push_back(i32(i));
    cu_seqlens.push_back(i32(ids.size()));
  }
  size_t tokens() const { return ids.size(); }
  model::batch_view view() const { return {ids.data(), positions.data(), cu_seqlens.data(), i32(ids.size()), i32(cu_seqlens.size() - 1)}; }
};
inline std::vector<i32> random_ids(std::mt19937_64& random, size_t count, i32 vocab) {
  std::vector<i32> ids(count);
  for (i32& id : ids) id = i32(random() % std::uint64_t(vocab));
  return ids;
}
inline packed random_batch(std::mt19937_64& random, std::vector<size_t> const& lengths, i32 vocab) {
  packed p;
  for (size_t n : lengths) p.push(random_ids(random, n, vocab));
  return p;
}

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
template <class T> double relative_distance(std::vector<T> const& a, std::vector<T> const& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += std::pow(double(a[i]) - double(b[i]), 2), norm += std::pow(double(b[i]), 2);
  return std::sqrt(difference / norm);
}

// A model with its rotary table, and whatever buffers a call needs.
template <class T> struct decoder {
  config c;
  std::vector<T> weights, rope;
  kernels::cpu_context on;
  decoder(config const& shape, std::vector<T> w) : c(shape), weights(std::move(w)), rope(size_t(c.max_positions) * size_t(c.head_dim)) {
    model::fill_rope_table(c, size_t(c.max_positions), rope.data());
  }

  std::vector<T> scratch(packed const& p, bool recompute) const {
    return std::vector<T>(model::activation_count(c, p.tokens(), recompute));
  }
  std::vector<T> forward(packed const& p, bool recompute, std::vector<T>& scratch) {
    std::vector<T> hidden(p.tokens() * size_t(c.hidden));
    model::forward(on, c, recompute, rope.data(), weights.data(), p.view(), scratch.data(), hidden.data());
    return hidden;
  }
  std::vector<T> forward(packed const& p) {
    std::vector<T> room = scratch(p, true);
    return forward(p, true, room);
  }
  void backward(packed const& p, bool recompute, std::vector<T>& scratch, std::vector<T> const& dhidden, std::vector<T>& gradients) {
    model::backward(on, c, recompute, rope.data(), weights.data(), p.view(), scratch.data(), dhidden.data(), gradients.data());
  }
};
}  // namespace test
