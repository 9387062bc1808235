// The hand-written backward against finite differences of the whole model, in double.
#include <doctest/doctest.h>

#include "support.hpp"

using namespace test;

namespace {
struct problem {
  decoder<double> m;
  packed batch;
  std::vector<i32> targets;                                 // a language model's
  std::vector<double> inverse_temperature, along, against;  // coefficients of the loss, one a row
};

problem make(config const& c, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  problem p{{c, random_weights<double>(c, seed)}, random_batch(random, {1, 5, 70, 3}, c.vocab), {}, {}, {}, {}};
  size_t const rows = p.batch.tokens() * size_t(c.labels ? c.labels : 1);
  for (size_t i = 0; i < rows; ++i) {
    p.targets.push_back(i32(random() % std::uint64_t(c.vocab)));
    p.inverse_temperature.push_back(0.5 + double(random() % 100) / 100);
    p.along.push_back(normal(random)), p.against.push_back(normal(random));
  }
  return p;
}

// Each term of the loss that a head offers, by name.
enum class term { log_prob, squared_log_prob, entropy, value, clipped_value };

double loss_of(problem& p, term kind, std::vector<double>* gradients, bool recompute = false) {
  config const& c = p.m.c;
  size_t const tokens = p.batch.tokens(), width = size_t(c.hidden);
  std::vector<double> scratch = p.m.scratch(p.batch, recompute), dhidden(tokens * width);
  std::vector<double> const hidden = p.m.forward(p.batch, recompute, scratch);
  std::vector<double> unused(model::parameter_count(c));
  double* const sums = gradients ? gradients->data() : unused.data();
  double loss = 0;
  if (c.labels == 0) {
    std::vector<double> log_prob(tokens), entropy(tokens), chunk(7 * size_t(c.vocab));
    kernels::head_loss(
        p.m.on, tokens, width, size_t(c.vocab), hidden.data(), model::head_weight(c, p.m.weights.data()), p.targets.data(),
        p.inverse_temperature.data(), 7, chunk.data(),
        [&](size_t row, double l, double) {
          double const a = p.along[row];
          if (kind == term::log_prob) return kernels::token_gradient<double>{a, 0};
          if (kind == term::entropy) return kernels::token_gradient<double>{0, a};
          return kernels::token_gradient<double>{a * l, 0};
        },
        log_prob.data(), entropy.data(), dhidden.data(), model::head_weight(c, sums));
    for (size_t i = 0; i < tokens; ++i)
      loss += p.along[i] * (kind == term::log_prob ? log_prob[i] : kind == term::entropy ? entropy[i] : 0.5 * log_prob[i] * log_prob[i]);
  } else {
    std::vector<double> scores(tokens * size_t(c.labels)), dscores(scores.size());
    model::score_head(p.m.on, c, tokens, hidden.data(), p.m.weights.data(), scores.data());
    for (size_t i = 0; i < scores.size(); ++i) {  // half the squared error; clipped: where the old value is left behind, the clip's
      double const clipped = std::min(std::max(scores[i], p.against[i] - 0.2), p.against[i] + 0.2);
      double const far = scores[i] - p.along[i], near = clipped - p.along[i];
      bool const use_clip = kind == term::clipped_value && near * near > far * far;
      loss += 0.5 * (use_clip ? near * near : far * far);
      dscores[i] = use_clip ? (clipped == scores[i] ? near : 0) : far;
    }
    model::score_head_backward(p.m.on, c, tokens, hidden.data(), p.m.weights.data(), dscores.data(), dhidden.data(), sums);
  }
  if (gradients) p.m.backward(p.batch, recompute, scratch, dhidden, *gradients);
  return loss;
}

double slope(problem& p, term kind, std::vector<double> const& direction) {
  double const step = 1e-5;
  std::vector<double> const start = p.m.weights;
  auto const at = [&](double t) {
    for (size_t i = 0; i < start.size(); ++i) p.m.weights[i] = start[i] + t * direction[i];
    return loss_of(p, kind, nullptr);
  };
  double const found = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);  // exact to the fourth power of step
  p.m.weights = start;
  return found;
}

void check(problem& p, term kind, unsigned seed) {
  std::vector<double> gradients(p.m.weights.size()), direction(gradients.size());
  loss_of(p, kind, &gradients);
  double norm = 0;
  for (double g : gradients) norm += g * g;
  REQUIRE(norm > 0);
  norm = std::sqrt(norm);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto const compare = [&] {
    double expected = 0;
    for (size_t i = 0; i < gradients.size(); ++i) expected += gradients[i] * direction[i];
    double const found = slope(p, kind, direction);
    CHECK(std::abs(found - expected) <= 1e-6 * (std::abs(expected) + 1e-2 * norm));
  };
  for (int i = 0; i < 3; ++i) {  // directions through all tensors at once
    model::for_each_tensor(p.m.c, [&](model::tensor const& t) {
      for (size_t k = 0; k < t.size(); ++k) direction[t.offset + k] = normal(random);
    });
    compare();
  }
  model::for_each_tensor(p.m.c, [&](model::tensor const& t) {  // one direction within each tensor, and one entry of it
    CAPTURE(model::full_name(t));
    std::fill(direction.begin(), direction.end(), 0);
    for (size_t k = 0; k < t.size(); ++k) direction[t.offset + k] = normal(random);
    compare();
    std::fill(direction.begin(), direction.end(), 0);
    direction[t.offset + random() % t.size()] = 1;
    compare();
  });
  // nothing is added between the tensors
  std::vector<bool> inside(gradients.size());
  model::for_each_tensor(p.m.c, [&](model::tensor const& t) { std::fill_n(inside.begin() + long(t.offset), t.size(), true); });
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!inside[i]) CHECK(gradients[i] == 0);
}
}  // namespace

TEST_CASE("gradients of log-probs, their squares and entropy pass finite differences in every family") {
  unsigned seed = 1;
  for (family const& f : families()) {
    CAPTURE(f.name);
    problem p = make(f.c, seed++);
    for (term kind : {term::log_prob, term::squared_log_prob, term::entropy}) {
      CAPTURE(int(kind));
      check(p, kind, seed++);
    }
  }
}

TEST_CASE("gradients of value losses pass finite differences in every family, with one label and with several") {
  unsigned seed = 100;
  for (family const& f : families()) {
    CAPTURE(f.name);
    config c = f.c;
    c.labels = 1 + i32(seed % 3);
    problem p = make(c, seed++);
    for (term kind : {term::value, term::clipped_value}) {
      CAPTURE(int(kind));
      check(p, kind, seed++);
    }
  }
}

TEST_CASE("gradients are added to what is there") {
  for (family const& f : families()) {
    CAPTURE(f.name);
    problem p = make(f.c, 7);
    std::vector<double> once(p.m.weights.size()), twice = once;
    loss_of(p, term::log_prob, &once);
    loss_of(p, term::log_prob, &twice);
    loss_of(p, term::log_prob, &twice);
    for (double& g : once) g *= 2;
    CHECK(relative_distance(twice, once) < 1e-14);
  }
}

TEST_CASE("recompute leaves the same bits") {
  for (family const& f : families())
    for (i32 labels : {0, 2}) {
      CAPTURE(f.name);
      config c = f.c;
      c.labels = labels, c.layers = 3;
      problem p = make(c, 11);
      std::vector<double> kept(p.m.weights.size()), redone = kept;
      term const kind = labels ? term::value : term::log_prob;
      CHECK(loss_of(p, kind, &kept, false) == loss_of(p, kind, &redone, true));
      CHECK(same_bits(kept, redone));
      CHECK(model::activation_count(c, 1000, true) < model::activation_count(c, 1000, false) / 2);
    }
}
