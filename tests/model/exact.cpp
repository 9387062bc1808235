// Bits: a row of the forward pass depends on its own sequence alone, wherever and however it is computed; gradients do not depend on
// threads or micro-batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/paged.hpp>

#include "support.hpp"

using namespace test;
using floats = std::vector<float>;

namespace {
// The small families, and a shape whose products are wider than any register block and divide by nothing.
std::vector<family> shapes() {
  std::vector<family> all = families();
  config c = all.back().c;
  c.hidden = 203, c.intermediate = 331, c.heads = 6, c.kv_heads = 3, c.head_dim = 36, c.vocab = 517,
  c.qkv_bias = c.o_bias = c.mlp_bias = true;
  all.push_back({"wide", c});
  return all;
}

floats log_probs(decoder<float>& m, floats const& hidden, std::vector<i32> const& targets, size_t chunk) {
  size_t const rows = targets.size();
  floats const inverse_temperature(rows, 1.25f);
  floats log_prob(rows), entropy(rows), logits(chunk * size_t(m.c.vocab));
  kernels::head_log_probs(m.on, rows, size_t(m.c.hidden), size_t(m.c.vocab), hidden.data(), model::head_weight(m.c, m.weights.data()),
                          targets.data(), inverse_temperature.data(), chunk, logits.data(), log_prob.data(), entropy.data());
  return log_prob;
}

// A pool with more slots and pages than needed, and a random page for every place of the table.
template <class Kv> struct pages {
  size_t slots, width;
  std::vector<i32> table;
  std::vector<Kv> data;
  kernels::paged_pool<Kv> pool;
  pages(config const& c, size_t slots_, size_t tokens, std::mt19937_64& random)
      : slots(slots_)
      , width((tokens + 63) / 64)
      , table(slots * width)
      , data((table.size() + 3) * kernels::page_elements<Kv>(size_t(c.layers), size_t(c.kv_heads), size_t(c.head_dim))) {
    std::vector<i32> order(table.size() + 3);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::copy_n(order.begin(), table.size(), table.begin());
    pool = {data.data(), size_t(c.layers), size_t(c.kv_heads), size_t(c.head_dim), table.data(), width};
  }
};

// Feeds every sequence through forward_paged in chunks of random size, mixed with the others in random order, in a random slot: hidden
// [tokens, hidden] in the order of the batch.
template <class Kv> floats hidden_over_pages(decoder<float>& m, packed const& p, std::mt19937_64& random, size_t largest_chunk) {
  size_t const sequences = p.cu_seqlens.size() - 1, width = size_t(m.c.hidden);
  pages<Kv> memory(m.c, sequences + random() % 4, 256, random);
  std::vector<i32> slot(memory.slots);
  std::iota(slot.begin(), slot.end(), 0);
  std::shuffle(slot.begin(), slot.end(), random);
  std::vector<i32> next(p.cu_seqlens.begin(), p.cu_seqlens.end() - 1);  // the first token of each sequence that is not in the pages yet
  floats hidden(p.tokens() * width);
  for (size_t left = p.tokens(); left > 0;) {
    std::vector<i32> rows;
    std::vector<size_t> of;
    for (size_t s = 0; s < sequences; ++s) {
      if (random() % 4 == 0) continue;
      size_t const chunk = std::min(size_t(p.cu_seqlens[s + 1] - next[s]), 1 + random() % largest_chunk);
      for (size_t i = 0; i < chunk; ++i) rows.push_back(next[s]++), of.push_back(s);
    }
    if (rows.empty()) continue;
    std::vector<size_t> order(rows.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::shuffle(order.begin(), order.end(), random);
    std::vector<i32> ids, positions, sequence;
    for (size_t i : order)
      ids.push_back(p.ids[size_t(rows[i])]), positions.push_back(p.positions[size_t(rows[i])]), sequence.push_back(slot[of[i]]);
    floats workspace(model::paged_workspace_count(m.c, ids.size())), out(ids.size() * width);
    model::forward_paged(m.on, m.c, m.rope.data(), m.weights.data(), ids.size(), ids.data(), positions.data(), sequence.data(), memory.pool,
                         workspace.data(), out.data());
    for (size_t i = 0; i < order.size(); ++i)
      std::copy_n(out.begin() + long(i * width), width, hidden.begin() + long(size_t(rows[order[i]]) * width));
    left -= rows.size();
  }
  return hidden;
}

std::vector<size_t> random_lengths(std::mt19937_64& random, size_t count, size_t most) {
  std::vector<size_t> lengths(count);
  for (size_t& n : lengths) n = 1 + random() % most;
  return lengths;
}

// Gradients of the sum of log-probs, each times a weight that belongs to its token; `head` takes the gradient of the LM head.
void add_gradients(decoder<float>& m, packed const& p, std::vector<i32> const& targets, floats const& weight, bool recompute,
                   floats& gradients, float* head) {
  size_t const tokens = p.tokens(), chunk = 5;
  floats scratch = m.scratch(p, recompute), dhidden(tokens * size_t(m.c.hidden)), logits(chunk * size_t(m.c.vocab)), log_prob(tokens),
         entropy(tokens);
  floats const hidden = m.forward(p, recompute, scratch), inverse_temperature(tokens, 1.0f);
  kernels::head_loss(
      m.on, tokens, size_t(m.c.hidden), size_t(m.c.vocab), hidden.data(), model::head_weight(m.c, m.weights.data()), targets.data(),
      inverse_temperature.data(), chunk, logits.data(),
      [&](size_t row, float, float) {
        return kernels::token_gradient<float>{weight[row], 0};
      },
      log_prob.data(), entropy.data(), dhidden.data(), head);
  m.backward(p, recompute, scratch, dhidden, gradients);
}

// A batch with targets and token weights, and the part of it that holds sequences [from, to).
struct task {
  packed batch;
  std::vector<i32> targets;
  floats weight;
  task part(size_t from, size_t to) const {
    task t;
    auto const begin = size_t(batch.cu_seqlens[from]), end = size_t(batch.cu_seqlens[to]);
    for (size_t s = from; s < to; ++s) t.batch.push({batch.ids.begin() + batch.cu_seqlens[s], batch.ids.begin() + batch.cu_seqlens[s + 1]});
    t.targets.assign(targets.begin() + long(begin), targets.begin() + long(end));
    t.weight.assign(weight.begin() + long(begin), weight.begin() + long(end));
    return t;
  }
};
task random_task(std::mt19937_64& random, std::vector<size_t> const& lengths, i32 vocab) {
  task t{random_batch(random, lengths, vocab), {}, {}};
  t.targets = random_ids(random, t.batch.tokens(), vocab);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < t.batch.tokens(); ++i) t.weight.push_back(normal(random));
  return t;
}

// The same function with the hidden dimensions in another order: every product over them walks k in another order.
decoder<float> reordered(decoder<float> const& m, std::mt19937_64& random) {
  std::vector<size_t> order(size_t(m.c.hidden));
  std::iota(order.begin(), order.end(), size_t(0));
  std::shuffle(order.begin(), order.end(), random);
  decoder<float> out(m.c, m.weights);
  model::for_each_tensor(m.c, [&](model::tensor const& t) {
    std::string const name = t.name;
    bool const rows =
        name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos || name.ends_with("norm.weight");
    bool const head_norm = name.find("q_norm") != std::string::npos || name.find("k_norm") != std::string::npos;
    size_t const cols = std::max(t.cols, size_t(1));
    if (head_norm || (t.cols == 0 && !rows)) return;
    for (size_t r = 0; r < t.rows; ++r)
      for (size_t k = 0; k < cols; ++k)
        out.weights[t.offset + r * cols + k] = m.weights[t.offset + (rows ? order[r] * cols + k : r * cols + order[k])];
  });
  return out;
}
}  // namespace

TEST_CASE("prefill and decode over pages give the bits of the training forward, in any slots, pages, chunks and batches") {
  std::mt19937_64 random(1);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3));
    for (size_t sequences : {1, 2, 3, 8, 17, 64}) {
      CAPTURE(sequences);
      packed const p = random_batch(random, random_lengths(random, sequences, sequences > 8 ? 40 : 200), f.c.vocab);
      floats const trained = m.forward(p);
      std::vector<i32> const targets = random_ids(random, p.tokens(), f.c.vocab);
      floats const log_prob = log_probs(m, trained, targets, 1 + random() % 64);
      for (size_t chunk : {size_t(1), size_t(7), size_t(100)}) {
        if (chunk == 1 && sequences > 8) continue;
        CAPTURE(chunk);
        floats const decoded = hidden_over_pages<float>(m, p, random, chunk);
        CHECK(same_bits(decoded, trained));
        CHECK(same_bits(log_probs(m, decoded, targets, 1 + random() % 64), log_prob));
      }
    }
  }
}

TEST_CASE("the comparison of bits notices another order of k") {
  std::mt19937_64 random(2);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3)), other = reordered(m, random);
    packed const p = random_batch(random, {40, 90}, f.c.vocab);
    std::vector<i32> const targets = random_ids(random, p.tokens(), f.c.vocab);
    floats const trained = log_probs(m, m.forward(p), targets, 8),
                 decoded = log_probs(other, hidden_over_pages<float>(other, p, random, 9), targets, 8);
    CHECK(!same_bits(decoded, trained));
    CHECK(relative_distance(decoded, trained) < 1e-5);
  }
}

TEST_CASE("pages of f8e4m3 come close, and their bits do not depend on slots, chunks or neighbours") {
  std::mt19937_64 random(3);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3));
    packed const p = random_batch(random, {1, 150, 30, 64, 65}, f.c.vocab);
    floats const trained = m.forward(p);
    floats const decoded = hidden_over_pages<f8e4m3>(m, p, random, 20);
    CHECK(same_bits(decoded, hidden_over_pages<f8e4m3>(m, p, random, 1)));
    CHECK(!same_bits(decoded, trained));
    CHECK(relative_distance(decoded, trained) < 0.1);
  }
}

TEST_CASE("a sequence has the same bits whatever is packed beside it") {
  std::mt19937_64 random(4);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3));
    packed const p = random_batch(random, random_lengths(random, 9, 100), f.c.vocab);
    floats const together = m.forward(p);
    for (size_t s = 0; s + 1 < p.cu_seqlens.size(); ++s) {
      packed alone;
      alone.push({p.ids.begin() + p.cu_seqlens[s], p.ids.begin() + p.cu_seqlens[s + 1]});
      long const width = f.c.hidden;
      CHECK(
          same_bits(m.forward(alone), floats(together.begin() + p.cu_seqlens[s] * width, together.begin() + p.cu_seqlens[s + 1] * width)));
    }
  }
}

TEST_CASE("threads and recompute change no bit of hidden states and gradients") {
  std::mt19937_64 random(5);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3));
    task const t = random_task(random, random_lengths(random, 6, 90), f.c.vocab);
    floats const hidden = m.forward(t.batch);
    floats gradients(m.weights.size());
    add_gradients(m, t.batch, t.targets, t.weight, false, gradients, model::head_weight(f.c, gradients.data()));
    for (size_t count : {1, 2, 3}) {
      kernels::threads pool(count);
      m.on.pool = &pool;
      CHECK(same_bits(m.forward(t.batch), hidden));
      CHECK(same_bits(hidden_over_pages<float>(m, t.batch, random, 50), hidden));
      for (bool recompute : {false, true}) {
        floats other(m.weights.size());
        add_gradients(m, t.batch, t.targets, t.weight, recompute, other, model::head_weight(f.c, other.data()));
        CHECK(same_bits(other, gradients));
      }
    }
    m.on.pool = nullptr;
  }
}

TEST_CASE("micro-batches cut anywhere give the gradient of one batch: the same bits, but for a tied embedding, whose two sums must be kept "
          "apart for that") {
  std::mt19937_64 random(6);
  for (family const& f : shapes()) {
    CAPTURE(f.name);
    decoder<float> m(f.c, random_weights<float>(f.c, 3));
    size_t const sequences = 12, head_size = size_t(f.c.vocab) * size_t(f.c.hidden);
    task const t = random_task(random, random_lengths(random, sequences, 60), f.c.vocab);
    auto const gradients_of = [&](std::vector<size_t> const& cuts, bool apart) {
      floats gradients(m.weights.size()), head(head_size);
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        task const part = t.part(cuts[i], cuts[i + 1]);
        add_gradients(m, part.batch, part.targets, part.weight, true, gradients,
                      apart ? head.data() : model::head_weight(f.c, gradients.data()));
      }
      if (apart) kernels::add(m.on, head_size, head.data(), model::head_weight(f.c, gradients.data()));
      return gradients;
    };
    for (int i = 0; i < 4; ++i) {
      std::vector<size_t> cuts{0};
      for (size_t s = 1; s < sequences; ++s)
        if (i == 0 || random() % 3 == 0) cuts.push_back(s);
      cuts.push_back(sequences);
      floats const whole = gradients_of({0, sequences}, false), parts = gradients_of(cuts, false);
      CHECK(relative_distance(parts, whole) < 1e-6);
      if (!f.c.tied) CHECK(same_bits(parts, whole));
      CHECK(same_bits(gradients_of(cuts, true), gradients_of({0, sequences}, true)));
    }
  }
}
