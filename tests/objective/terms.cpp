// Terms: gradients against finite differences, known values, and what must hold for any sum of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "finite_difference.hpp"

using namespace weft;
using namespace weft::objective;
using doctest::Approx;

namespace {
// A term of one's own
struct clipped_log_prob : token_term<> {
  static constexpr char const* name = "actor/clipped";
  double floor = -1;
  template <class T> token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    return t.log_prob < T(floor) ? token_loss<T>{-T(floor), 0, 0} : token_loss<T>{-t.log_prob, -1, 0};
  }
};

// DPPO has no default threshold
struct near_tv : dppo_tv {
  near_tv() { threshold_low = threshold_high = 0.05; }
};
struct near_kl : dppo_kl {
  near_kl() { threshold_low = threshold_high = 0.02; }
};

template <class Term> void check_gradient() {
  for (unsigned seed = 0; seed < 8; ++seed)
    for (auto const& mode : aggregation_names) {
      sum<Term> o;
      o.loss_agg_mode = mode.mode;
      o.loss_scale_factor = 3;
      CAPTURE(mode.name);
      CAPTURE(seed);
      CHECK(test::gradient_error(o, test::random_batch(seed)) < 2e-7);
    }
}
}  // namespace

TEST_CASE_TEMPLATE("the gradient of a term is the derivative of its value", Term, ppo_clip, gspo, geo_mean, cispo, sapo, reinforce, kl,
                   objective::entropy, sft, near_tv, near_kl, kl_cov, clip_cov, clipped_log_prob) {
  check_gradient<Term>();
}

TEST_CASE("so it is for every estimator of KL") {
  for (auto const& known : kl_estimator_names) {
    sum<kl> o;
    o.of<kl>().estimator = known.estimator;
    CAPTURE(known.name);
    CHECK(test::gradient_error(o, test::random_batch(3)) < 2e-7);
    CHECK(test::gradient_error(o, test::random_batch(4, 6, 7, 15)) < 2e-6);  // far enough for both clamps
  }
}

TEST_CASE("and for a sum, where every term counts with its weight") {
  sum<ppo_clip, kl, objective::entropy, gspo, geo_mean> o;
  o.of<kl>().weight = 0.3;
  o.of<objective::entropy>().weight = 0.01;
  o.of<gspo>().weight = 0.5;
  o.loss_agg_mode = aggregation::seq_mean_token_mean;
  CHECK(test::gradient_error(o, test::random_batch(5)) < 2e-7);

  auto const b = test::random_batch(5);
  auto const n = test::count<response>(b.rows, b.width, b.mask);
  double const together = test::evaluate(o, b, n, 0, b.rows).loss;
  auto alone = [&](auto term, double weight) {
    sum<decltype(term)> one;
    one.template of<decltype(term)>().weight = weight;
    one.loss_agg_mode = o.loss_agg_mode;
    return test::evaluate(one, b, n, 0, b.rows).loss;
  };
  CHECK(together ==
        Approx(alone(ppo_clip{}, 1) + alone(kl{}, 0.3) + alone(objective::entropy{}, 0.01) + alone(gspo{}, 0.5) + alone(geo_mean{}, 1)));
}

TEST_CASE("the critic's loss and the losses of pairs have true gradients") {
  std::mt19937 draw(1);
  std::normal_distribution<double> normal;
  double const h = 1e-6;
  for (int k = 0; k < 200; ++k) {
    value_clip const v;
    prediction<double> const p{normal(draw), normal(draw), normal(draw)};
    auto value_at = [&](double d) { return v(prediction<double>{p.value + d, p.old_value, p.target}, sequence<double>{}).value; };
    CHECK(v(p, sequence<double>{}).prediction == Approx((value_at(h) - value_at(-h)) / (2 * h)).epsilon(1e-6).scale(1));

    pair<double> const q{normal(draw) - 9, normal(draw) - 9, normal(draw) - 9, normal(draw) - 9, 4, 7};
    auto check = [&](auto const& term) {
      auto at = [&](double c, double r) {
        auto moved = q;
        moved.chosen += c, moved.rejected += r;
        return term(moved, sequence<double>{}).value;
      };
      auto const l = term(q, sequence<double>{});
      CHECK(l.chosen == Approx((at(h, 0) - at(-h, 0)) / (2 * h)).epsilon(1e-6).scale(1));
      CHECK(l.rejected == Approx((at(0, h) - at(0, -h)) / (2 * h)).epsilon(1e-6).scale(1));
    };
    for (auto loss : {dpo_loss::sigmoid, dpo_loss::hinge, dpo_loss::ipo, dpo_loss::robust}) {
      dpo d;
      d.loss = loss, d.beta = 0.7, d.label_smoothing = 0.1;
      check(d);
    }
    check(bradley_terry{});
  }
}

TEST_CASE("PPO: ratios, losses, gradients and clip fractions that are known") {
  test::batch<double> b;
  b.rows = 1, b.width = 6;
  b.mask.assign(6, 1);
  b.old_log_prob.assign(6, -1);
  b.log_prob = {-1, -.7, -1.3, -.7, -1.3, .8};
  b.advantage = {1, 1, 1, -1, -1, -1};
  sum<ppo_clip> o;
  o.loss_agg_mode = aggregation::token_sum;
  double const loss[] = {-1, -1.2, -.740818221, 1.349858808, .8, 3}, slope[] = {-1, 0, -.740818221, 1.349858808, 0, 0};
  auto value = [&](size_t i) { return o.of<ppo_clip>()(b(i), sequence<double>{}).value; };
  auto const out = test::evaluate(o, b);
  for (size_t i = 0; i < 6; ++i) {
    CHECK(value(i) == Approx(loss[i]).epsilon(1e-9));
    CHECK(out.log_prob[i] == Approx(slope[i]).epsilon(1e-9));
  }
  CHECK(out.metrics[2] / 6 == Approx(1. / 3));
  CHECK(out.metrics[3] / 6 == Approx(1. / 6));
  CHECK(out.metrics[4] / 6 == Approx(-.3));
  o.of<ppo_clip>().clip_ratio_high = 0.28;
  CHECK(value(1) == Approx(-1.28));
  o.of<ppo_clip>().clip_ratio_c = std::numeric_limits<double>::infinity();
  CHECK(value(5) == Approx(6.049647464));
  CHECK(test::evaluate(o, b).log_prob[5] == Approx(6.049647464));
}

TEST_CASE("beyond e^20 the ratio stands still and gives no gradient") {
  ppo_clip open;
  open.clip_ratio_c = open.clip_ratio_high = std::numeric_limits<double>::infinity();
  for (double off : {19.0, 21.0}) {
    token<double> const t{.log_prob = -1, .detached = -1, .old_log_prob = -1 - off, .advantage = -1};
    auto const l = open(t, sequence<double>{});
    CHECK(l.value == Approx(std::exp(off > 20 ? 20 : off)));
    CHECK(l.log_prob == (std::abs(off) > 20 ? 0 : l.value));
    CHECK(sapo{}(t, sequence<double>{}).log_prob == Approx(0).scale(1));
  }
}

TEST_CASE("DPPO stops a token only where A pushes it out of the trust region") {
  auto slope = [](auto const& term, double p, double old, double A) {
    token<double> const t{.log_prob = std::log(p), .detached = std::log(p), .old_log_prob = std::log(old), .advantage = A};
    return term(t, sequence<double>{}).log_prob;
  };
  CHECK(slope(near_tv{}, .56, .5, 1) == 0);
  CHECK(slope(near_tv{}, .54, .5, 1) == Approx(-.54 / .5));
  CHECK(slope(near_tv{}, .44, .5, 1) == Approx(-.44 / .5));  // moved away, and is to come back
  CHECK(slope(near_tv{}, .44, .5, -1) == 0);
  CHECK(slope(near_tv{}, .56, .5, -1) == Approx(.56 / .5));
  CHECK(slope(near_kl{}, .61, .5, 1) == 0);                  // binary KL .0246
  CHECK(slope(near_kl{}, .59, .5, 1) == Approx(-.59 / .5));  // .0163
  CHECK(slope(near_tv{}, .03, .001, -1) == Approx(20));      // r = 30
}

TEST_CASE("the tokens with the highest covariance are the ones that a sort finds, ties to the first") {
  std::mt19937 draw(5);
  for (int round = 0; round < 200; ++round) {
    size_t const n = draw() % 60, most = draw() % 20;
    std::vector<float> rank(n);
    std::vector<i32> eligible(n), selected(n, 7), heap(most + 1), order, expected(n, 0);
    for (size_t i = 0; i < n; ++i) {
      rank[i] = float(draw() % 9);
      eligible[i] = draw() % 4 != 0;
      if (eligible[i]) order.push_back(i32(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](i32 a, i32 b) { return rank[size_t(a)] > rank[size_t(b)]; });
    for (size_t k = 0; k < order.size() && k < most; ++k) expected[size_t(order[k])] = 1;
    select_highest(n, rank.data(), eligible.data(), most, heap.data(), selected.data());
    CHECK(selected == expected);
  }
  CHECK(covariance_share(2e-4, 100) == 1);
  CHECK(covariance_share(2e-4, 20000) == 4);
}

TEST_CASE("GSPO's ratio, the clipped value loss, DPO: values that are known") {
  auto ratio = [](std::vector<double> old, std::vector<double> lp) {
    test::batch<double> b;
    b.rows = 1, b.width = lp.size();
    b.mask.assign(lp.size(), 1);
    b.old_log_prob = old, b.log_prob = lp;
    b.advantage.assign(lp.size(), -1);  // L = r where nothing is clipped
    sum<gspo> o;
    o.of<gspo>().clip_ratio_high = 9;
    return test::evaluate(o, b).loss;
  };
  CHECK(ratio({-1, -1, -1}, {-.9, -.8, -1.2}) == Approx(1.033895114).epsilon(1e-9));
  CHECK(ratio({-2, -2}, {-1.5, -1.5}) == Approx(1.648721271).epsilon(1e-9));

  double const v[] = {1, 2, .2}, old[] = {.2, 1.9, .1}, R[] = {0, 3, 1};
  double loss = 0;
  for (int i = 0; i < 3; ++i) loss += value_clip{}(prediction<double>{v[i], old[i], R[i]}, sequence<double>{}).value / 3;
  CHECK(loss == Approx(.44));

  auto const d = dpo{}(pair<double>{-12, -15, -13, -14}, sequence<double>{});
  CHECK(d.value == Approx(.598138869).epsilon(1e-9));
  double metrics[4] = {};
  dpo{}.measure(pair<double>{-12, -15, -13, -14}, sequence<double>{}, metrics);
  CHECK(metrics[3] == Approx(.2));
}

TEST_CASE("a cut of the mini-batch changes no sum: counts belong to the whole") {
  sum<ppo_clip, gspo, geo_mean, kl, objective::entropy> o;
  for (unsigned seed = 0; seed < 5; ++seed)
    for (auto const& mode : aggregation_names) {
      o.loss_agg_mode = mode.mode;
      auto const b = test::random_batch(seed, 8);
      auto const n = test::count<response>(b.rows, b.width, b.mask);
      auto const whole = test::evaluate(o, b, n, 0, b.rows);
      for (size_t cut = 0; cut <= b.rows; ++cut) {
        auto const first = test::evaluate(o, b, n, 0, cut), second = test::evaluate(o, b, n, cut, b.rows);
        CHECK(first.loss + second.loss == Approx(whole.loss).epsilon(1e-12).scale(1));
        for (size_t i = 0; i < b.mask.size(); ++i) CHECK(first.log_prob[i] + second.log_prob[i] == whole.log_prob[i]);  // bit for bit
        for (size_t k = 0; k < whole.metrics.size(); ++k)
          CHECK(first.metrics[k] + second.metrics[k] == Approx(whole.metrics[k]).epsilon(1e-12).scale(1));
      }
    }
}

TEST_CASE("what lies at tokens that do not count is never seen") {
  sum<ppo_clip, gspo, geo_mean, kl, objective::entropy> o;
  auto const b = test::random_batch(7);
  auto poisoned = b;
  for (size_t i = 0; i < b.mask.size(); ++i)
    if (!b.mask[i])
      for (auto* x : {&poisoned.log_prob, &poisoned.entropy, &poisoned.old_log_prob, &poisoned.ref_log_prob, &poisoned.advantage,
                      &poisoned.rollout_weight})
        (*x)[i] = std::numeric_limits<double>::quiet_NaN();
  auto const clean = test::evaluate(o, b), dirty = test::evaluate(o, poisoned);
  CHECK(clean.loss == dirty.loss);
  CHECK(clean.log_prob == dirty.log_prob);
  CHECK(clean.entropy == dirty.entropy);
  CHECK(clean.metrics == dirty.metrics);
}

TEST_CASE("loss times 2^k gives gradients times 2^k exactly, and the same metrics") {
  auto const b64 = test::random_batch(9);
  test::batch<float> b;
  b.rows = b64.rows, b.width = b64.width, b.mask = b64.mask;
  auto narrow = [](std::vector<double> const& x) { return std::vector<float>(x.begin(), x.end()); };
  b.log_prob = narrow(b64.log_prob), b.old_log_prob = narrow(b64.old_log_prob), b.ref_log_prob = narrow(b64.ref_log_prob);
  b.advantage = narrow(b64.advantage), b.entropy = narrow(b64.entropy);
  sum<ppo_clip, kl, objective::entropy> o;
  auto const plain_scale = test::evaluate(o, b);
  for (int k : {-20, -3, 1, 15, 60}) {
    o.scale = std::ldexp(1.0, k);
    auto const scaled_up = test::evaluate(o, b);
    for (size_t i = 0; i < b.mask.size(); ++i) {
      CHECK(scaled_up.log_prob[i] == std::ldexp(plain_scale.log_prob[i], k));
      CHECK(scaled_up.entropy[i] == std::ldexp(plain_scale.entropy[i], k));
    }
    CHECK(scaled_up.metrics == plain_scale.metrics);
  }
}

TEST_CASE("a term of weight 0 is measured and not trained: its input may be missing") {
  auto b = test::random_batch(2);
  for (auto& x : b.ref_log_prob) x = std::numeric_limits<double>::quiet_NaN();
  sum<ppo_clip, kl> o;
  o.of<kl>().weight = 0;
  auto const out = test::evaluate(o, b), without = test::evaluate(sum<ppo_clip>{}, b);
  CHECK(out.loss == without.loss);
  CHECK(out.log_prob == without.log_prob);
  CHECK(out.metrics[0] == without.metrics[0]);
}

TEST_CASE("on the first update the ratio is 1, the loss -A, and nothing is clipped") {
  auto b = test::random_batch(4);
  b.old_log_prob = b.log_prob;
  b.rollout_weight.clear();
  sum<ppo_clip> o;
  o.loss_agg_mode = aggregation::token_sum;
  auto const out = test::evaluate(o, b);
  for (size_t i = 0; i < b.mask.size(); ++i) CHECK(out.log_prob[i] == (b.mask[i] ? -b.advantage[i] : 0.0));
  CHECK(out.metrics[2] == 0);
  CHECK(out.metrics[4] == 0);
}

TEST_CASE("metrics carry verl's names") {
  auto const names = sum<ppo_clip, kl, objective::entropy>::metric_names();
  char const* const expected[] = {"loss",         "actor/pg_loss", "actor/pg_clipfrac", "actor/pg_clipfrac_lower",
                                  "actor/ppo_kl", "actor/kl_loss", "actor/entropy"};
  REQUIRE(names.size() == std::size(expected));
  for (size_t i = 0; i < names.size(); ++i) CHECK(std::string(names[i].name) == expected[i]);
}

static_assert(std::is_trivially_copyable_v<sum<ppo_clip, kl, objective::entropy>>);  // a setting of a stage
