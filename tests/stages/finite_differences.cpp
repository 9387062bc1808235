// Every loss term through a whole model, in double: the loss as a function of the weights against the gradient that backward finds.
// What a term takes as constant (`detached`, a pass before the gradient pass, old and reference log-probs) stays as it was.
#include <doctest/doctest.h>
#include <functional>
#include <model/support.hpp>
#include <objective/batch.hpp>

using namespace weft;
namespace O = weft::objective;

namespace {
// Sequences one behind the other; some tokens of each count, in one of them none.
struct problem {
  ::test::decoder<double> m;
  ::test::packed batch;
  std::vector<i32> targets;
  std::vector<double> inverse_temperature, start;

  problem(model::config const& c, unsigned seed, bool plain) : m{c, ::test::random_weights<double>(c, seed)}, start{m.weights} {
    std::mt19937_64 random(seed);
    batch = ::test::random_batch(random, {12, 1, 9, 30, 5, 17}, c.vocab);
    targets = ::test::random_ids(random, batch.tokens(), c.vocab);
    for (size_t i = 0; i < batch.tokens(); ++i) inverse_temperature.push_back(plain ? 1 : 0.6 + double(random() % 100) / 100);
  }
  size_t sequences() const { return batch.cu_seqlens.size() - 1; }
  size_t length(size_t s) const { return size_t(batch.cu_seqlens[s + 1] - batch.cu_seqlens[s]); }
  size_t token(size_t s, size_t t) const { return size_t(batch.cu_seqlens[s]) + t; }
  bool counts(size_t s, size_t t) const { return s != 1 && t >= length(s) / 3; }
};
// What a head gives for each token, and the loss of it with its derivatives: first is a log-prob or a score, second an entropy.
struct numbers {
  std::vector<double> first, second;
};
using loss_function = std::function<double(numbers const& at, numbers* slope)>;

numbers outputs(problem& p) {
  auto const& c = p.m.c;
  size_t const n = p.batch.tokens(), width = size_t(c.hidden);
  auto const hidden = p.m.forward(p.batch);
  numbers at{std::vector<double>(n), std::vector<double>(n)};
  if (c.labels) {
    model::score_head(p.m.on, c, n, hidden.data(), p.m.weights.data(), at.first.data());
  } else {
    std::vector<double> chunk(7 * size_t(c.vocab));
    kernels::head_log_probs(p.m.on, n, width, size_t(c.vocab), hidden.data(), model::head_weight(c, p.m.weights.data()), p.targets.data(),
                            p.inverse_temperature.data(), 7, chunk.data(), at.first.data(), at.second.data());
  }
  return at;
}
std::vector<double> gradient(problem& p, loss_function const& loss) {
  auto const& c = p.m.c;
  size_t const n = p.batch.tokens(), width = size_t(c.hidden);
  auto const at = outputs(p);
  numbers slope{std::vector<double>(n), std::vector<double>(n)};
  loss(at, &slope);
  auto scratch = p.m.scratch(p.batch, false);
  auto const hidden = p.m.forward(p.batch, false, scratch);
  std::vector<double> all(p.m.weights.size()), dhidden(n * width);
  if (c.labels) {
    model::score_head_backward(p.m.on, c, n, hidden.data(), p.m.weights.data(), slope.first.data(), dhidden.data(), all.data());
  } else {
    std::vector<double> chunk(7 * size_t(c.vocab)), lp(n), entropy(n);
    kernels::head_loss(
        p.m.on, n, width, size_t(c.vocab), hidden.data(), model::head_weight(c, p.m.weights.data()), p.targets.data(),
        p.inverse_temperature.data(), 7, chunk.data(),
        [&](size_t r, double, double) {
          return kernels::token_gradient<double>{slope.first[r], slope.second[r]};
        },
        lp.data(), entropy.data(), dhidden.data(), model::head_weight(c, all.data()));
  }
  p.m.backward(p.batch, false, scratch, dhidden, all);
  return all;
}
void check(problem& p, loss_function const& loss, unsigned seed) {
  auto const found = gradient(p, loss);
  double size = 0;
  for (double g : found) size += g * g;
  size = std::sqrt(size);
  REQUIRE(size > 0);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int checked = 0;
  for (int tries = 0; tries < 30 && checked < 3; ++tries) {
    std::vector<double> direction(found.size());
    double expected = 0;
    model::for_each_tensor(p.m.c, [&](model::tensor const& t) {
      for (size_t k = t.offset; k < t.offset + t.size(); ++k) expected += found[k] * (direction[k] = normal(random));
    });
    auto const at = [&](double x) {
      for (size_t k = 0; k < direction.size(); ++k) p.m.weights[k] = p.start[k] + x * direction[k];
      return loss(outputs(p), nullptr);
    };
    auto const slope = [&](double step) {
      return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
    };  // exact to step^4
    double const wide = slope(1e-5), narrow = slope(4e-6), tolerance = 1e-6 * (std::abs(expected) + 1e-2 * size);
    p.m.weights = p.start;
    if (std::abs(wide - narrow) > tolerance) continue;  // the bound of some token lies within the step
    CHECK(std::abs(wide - expected) <= tolerance);
    ++checked;
  }
  CHECK(checked == 3);
}

// A rectangular batch around the log-probs that the model gives now.
weft::test::batch<double> around(problem& p, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto const now = outputs(p);
  weft::test::batch<double> b;
  b.rows = p.sequences(), b.width = 30;
  size_t const cells = b.rows * b.width;
  b.mask.resize(cells), b.selected.resize(cells);
  for (auto* v : {&b.log_prob, &b.detached, &b.entropy, &b.old_log_prob, &b.ref_log_prob, &b.advantage, &b.rollout_weight})
    v->resize(cells);
  for (size_t s = 0; s < b.rows; ++s)
    for (size_t t = 0; t < p.length(s); ++t) {
      size_t const i = s * b.width + t;
      double const lp = now.first[p.token(s, t)];
      b.mask[i] = p.counts(s, t);
      b.detached[i] = lp;
      b.old_log_prob[i] = lp + 0.7 * normal(random);
      b.ref_log_prob[i] = lp + 0.7 * normal(random);
      b.advantage[i] = normal(random) - (s % 2 ? 0.3 : 0);
      b.rollout_weight[i] = 0.5 + std::abs(normal(random));
      b.selected[i] = random() % 3 == 0;
    }
  return b;
}
template <class Sum> loss_function of_tokens(problem const& p, Sum const& o, weft::test::batch<double> b) {
  return [&p, o, b](numbers const& at, numbers* slope) mutable {
    auto const each = [&](auto const& f) {
      for (size_t s = 0; s < b.rows; ++s)
        for (size_t t = 0; t < p.length(s); ++t) f(s * b.width + t, p.token(s, t));
    };
    each([&](size_t cell, size_t token) { b.log_prob[cell] = at.first[token], b.entropy[cell] = at.second[token]; });
    auto const all = weft::test::evaluate(o, b);
    if (slope) each([&](size_t cell, size_t token) { slope->first[token] = all.log_prob[cell], slope->second[token] = all.entropy[cell]; });
    return all.loss;
  };
}
std::vector<model::config> models(i32 labels = 0) {  // tied and not, with every kind of tensor
  std::vector<model::config> all;
  for (auto const& f : ::test::families())
    if (f.name == "llama with all biases" || f.name == "qwen3") all.push_back(f.c), all.back().labels = labels;
  REQUIRE(all.size() == 2);
  return all;
}

template <class Term> void every_aggregation(Term const& term = {}) {
  using sum = O::sum<Term, O::masked<O::reading<O::entropy, typename Term::reads>, typename Term::mask>>;
  constexpr bool plain = std::is_same_v<typename Term::reads, O::log_probs<O::full, O::plain>>;
  unsigned seed = 1;
  for (auto const& c : models())
    for (auto const& mode : O::aggregation_names) {
      CAPTURE(std::string(mode.name));
      sum o;
      static_cast<Term&>(o.template of<Term>()) = term;
      o.template of<O::masked<O::reading<O::entropy, typename Term::reads>, typename Term::mask>>().weight = 0.1;
      o.loss_agg_mode = mode.mode;
      o.loss_scale_factor = 30;
      problem p{c, ++seed, plain};
      auto const b = around(p, seed);
      check(p, of_tokens(p, o, b), seed);
    }
}
struct open_clip : O::ppo_clip {  // no dual clip
  open_clip() { clip_ratio_c = INFINITY; }
};
struct high_clip : O::ppo_clip {
  high_clip() { clip_ratio_high = 0.28, clip_ratio_c = 1.5; }
};
struct near_tv : O::dppo_tv {  // DPPO has no default threshold
  near_tv() { threshold_low = threshold_high = 0.02; }
};
struct near_kl : O::dppo_kl {
  near_kl() { threshold_low = threshold_high = 0.005; }
};
}  // namespace

TEST_CASE_TEMPLATE("the gradient of a term through the model is the derivative of its loss", Term, O::ppo_clip, open_clip, high_clip,
                   O::gspo, O::geo_mean, O::cispo, O::sapo, O::reinforce, near_tv, near_kl, O::clip_cov, O::kl_cov, O::sft) {
  every_aggregation<Term>();
}
TEST_CASE("so it is for every estimator of KL") {
  for (auto const& known : O::kl_estimator_names) {
    CAPTURE(std::string(known.name));
    O::kl k;
    k.estimator = known.estimator;
    every_aggregation(k);
  }
}
TEST_CASE("bounds are active and inactive in what is checked") {
  problem p{models()[0], 2, false};
  auto b = around(p, 2);
  b.log_prob = b.detached;
  auto const share = [&](auto const& term, size_t metric) {
    O::sum<std::decay_t<decltype(term)>> o;
    auto const all = weft::test::evaluate(o, b);
    double tokens = 0;
    for (i32 m : b.mask) tokens += m;
    return all.metrics[2 + metric] / tokens;
  };
  for (double x : {share(O::ppo_clip{}, 0), share(high_clip{}, 1), share(O::gspo{}, 0), share(O::geo_mean{}, 0), share(O::cispo{}, 0),
                   share(near_tv{}, 0), share(near_kl{}, 0), share(O::clip_cov{}, 0)}) {
    CHECK(x > 0.02);
    CHECK(x < 0.98);
  }
}
TEST_CASE("the critic's clipped loss") {
  for (auto const& c : models(1))
    for (auto const& mode : O::aggregation_names) {
      CAPTURE(std::string(mode.name));
      O::sum<O::value_clip> o;
      o.loss_agg_mode = mode.mode;
      problem p{c, 3, true};
      std::mt19937_64 random(3);
      std::normal_distribution<double> normal;
      std::vector<double> const now = outputs(p).first;
      std::vector<double> old = now, target = now;
      for (double& x : old) x += normal(random);
      for (double& x : target) x += normal(random);
      O::counts<O::response> n;
      for (size_t s = 0; s < p.sequences(); ++s) {
        std::vector<i32> mask;
        for (size_t t = 0; t < p.length(s); ++t) mask.push_back(p.counts(s, t));
        O::count_row(mask.size(), mask.data(), n);
      }
      size_t clipped = 0;
      check(
          p,
          [&](numbers const& at, numbers* slope) {
            double loss = 0;
            for (size_t s = 0; s < p.sequences(); ++s)
              for (size_t t = 0; t < p.length(s); ++t) {
                if (!p.counts(s, t)) continue;
                size_t const i = p.token(s, t);
                auto const l = o.evaluate(O::prediction<double>{at.first[i], old[i], target[i]},
                                          O::sequence<double>{double(p.length(s) - p.length(s) / 3), nullptr}, n);
                loss += l.value;
                clipped += l.prediction == 0;
                if (slope) slope->first[i] = l.prediction;
              }
            return loss;
          },
          4);
      CHECK(clipped > 0);
    }
}
TEST_CASE("preference of one sequence over another: sums of log-probs, and scores") {
  auto const pairs = [&](auto const& o, problem& p, bool last_only, unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> ref;
    for (size_t s = 0; s < p.sequences(); ++s) ref.push_back(normal(random));
    auto const reads = [=](problem const& q, size_t s, size_t t) { return last_only ? t + 1 == q.length(s) : t >= q.length(s) / 3; };
    auto const sum_of = [&p, reads](std::vector<double> const& x, size_t s) {
      double all = 0;
      for (size_t t = 0; t < p.length(s); ++t)
        if (reads(p, s, t)) all += x[p.token(s, t)];
      return all;
    };
    std::vector<double> const now = outputs(p).first;
    for (size_t s = 0; s < ref.size(); ++s) ref[s] += sum_of(now, s);
    O::counts<typename std::decay_t<decltype(o)>::mask> n;
    n.pairs = std::int64_t(p.sequences() / 2);
    check(
        p,
        [&, n](numbers const& at, numbers* slope) {
          double loss = 0;
          for (size_t s = 0; s + 1 < p.sequences(); s += 2) {
            auto const counted = [&](size_t k) { return double(p.length(k) - p.length(k) / 3); };
            auto const l =
                o.evaluate(O::pair<double>{sum_of(at.first, s), sum_of(at.first, s + 1), ref[s], ref[s + 1], counted(s), counted(s + 1)},
                           O::sequence<double>{}, n);
            loss += l.value;
            for (size_t k = s; slope && k < s + 2; ++k)
              for (size_t t = 0; t < p.length(k); ++t)
                if (reads(p, k, t)) slope->first[p.token(k, t)] = k == s ? l.chosen : l.rejected;
          }
          return loss;
        },
        seed);
  };
  for (auto const& c : models())
    for (auto loss : {O::dpo_loss::sigmoid, O::dpo_loss::hinge, O::dpo_loss::ipo, O::dpo_loss::robust}) {
      CAPTURE(int(loss));
      O::sum<O::dpo> o;
      o.of<O::dpo>().loss = loss, o.of<O::dpo>().beta = 0.7, o.of<O::dpo>().label_smoothing = 0.1;
      problem p{c, 8, true};
      pairs(o, p, false, 9);
    }
  for (auto const& c : models(1)) {
    problem p{c, 10, true};
    pairs(O::sum<O::bradley_terry>{}, p, true, 11);
  }
}
