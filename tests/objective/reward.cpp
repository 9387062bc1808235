// KL estimators, KL in the reward and its control, overlong answers.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <weft/objective/reward.hpp>

using namespace weft;
using namespace weft::objective;
using doctest::Approx;

TEST_CASE("estimators of KL: values that are known, clamps included") {
  auto check = [](kl_estimator e, double lp, double ref, double value, double gradient) {
    auto const k = kl_of(e, lp, lp, ref);
    CHECK(k.value == Approx(value).epsilon(1e-8));
    CHECK(k.log_prob == Approx(gradient).epsilon(1e-8));
  };
  check(kl_estimator::k1, -1, -1.2, .2, 1);
  check(kl_estimator::k2, -1, -1.2, .02, .2);
  check(kl_estimator::k3, -1, -1.2, .018730753, .181269247);
  check(kl_estimator::abs, -1, -1.2, .2, 1);
  check(kl_estimator::k1, -2, -1, -1, 1);
  check(kl_estimator::k2, -2, -1, .5, -1);
  check(kl_estimator::k3, -2, -1, .718281828, -1.718281828);
  check(kl_estimator::k1, -30, -2, -28, 1);
  check(kl_estimator::k2, -30, -2, 392, -28);
  check(kl_estimator::k3, -30, -2, 10, 0);
  check(kl_estimator::k1_plus, -2, -1, -1, -1);
  check(kl_estimator::k3_plus, -30, -2, 10, -28);
  check(kl_estimator::unbiased, -2, -1, .718281828, -1);  // k3 + its own derivative = -d
}

TEST_CASE("the unbiased estimator has the gradient of the true KL in expectation") {
  double const logits[] = {.3, -1, .8}, ref[] = {-.9, -1.2, -1.2};
  auto log_prob = [&](int k, double shift) {
    double sum = 0;
    for (int j = 0; j < 3; ++j) sum += std::exp(logits[j] + (j == 0 ? shift : 0));
    return logits[k] + (k == 0 ? shift : 0) - std::log(sum);
  };
  auto true_kl = [&](double shift) {
    double kl = 0;
    for (int k = 0; k < 3; ++k) kl += std::exp(log_prob(k, shift)) * (log_prob(k, shift) - ref[k]);
    return kl;
  };
  double const h = 1e-6;
  double expected = 0;
  for (int k = 0; k < 3; ++k) {
    double const lp = log_prob(k, 0), d_lp = (log_prob(k, h) - log_prob(k, -h)) / (2 * h);
    expected += std::exp(lp) * kl_of(kl_estimator::unbiased, lp, lp, ref[k]).log_prob * d_lp;
  }
  double mass = 0;  // k3 takes ref as a distribution: E[e^d] = sum of ref
  for (double r : ref) mass += std::exp(r);
  REQUIRE(mass == Approx(1).epsilon(0.01));
  CHECK(expected == Approx((true_kl(h) - true_kl(-h)) / (2 * h)).epsilon(1e-6));
}

TEST_CASE("the adaptive coefficient moves by at most a fifth of n / horizon") {
  kl_control c;
  auto next = [&](double kl) { return next_kl_coefficient(c, .001, kl, 1024); };
  CHECK(next(.5) == .001);  // fixed
  c.adaptive = true;
  CHECK(next(.05) == Approx(.00097952).epsilon(1e-9));
  CHECK(next(.1) == Approx(.001).epsilon(1e-9));
  CHECK(next(.5) == Approx(.00102048).epsilon(1e-9));
}

TEST_CASE("the score lies on the last token that counts, KL on every one, and nothing else is read") {
  double const no = std::numeric_limits<double>::quiet_NaN();
  std::vector<i32> const mask{1, 0, 1, 0};
  std::vector<double> const old{-1, no, -2, no}, ref{-1.5, no, -1, no};
  std::vector<double> reward(4, no);
  CHECK(token_rewards(4, 3.0, mask.data(), kl_estimator::k1, .1, old.data(), ref.data(), reward.data()) == Approx((.5 - 1) / 2));
  CHECK(reward[0] == Approx(-.05));
  CHECK(reward[1] == 0);
  CHECK(reward[2] == Approx(3.1));
  CHECK(reward[3] == 0);
  CHECK(token_rewards(4, 3.0, mask.data(), kl_estimator::k1, 0, (double*)nullptr, (double*)nullptr, reward.data()) == 0);
  CHECK(reward == std::vector<double>{0, 0, 3, 0});
}

TEST_CASE("overlong answers pay within the buffer") {
  overlong const o;
  CHECK(overlong_penalty(o, 100) == 0);
  CHECK(overlong_penalty(o, 16384) == 0);
  CHECK(overlong_penalty(o, 17000) == Approx(-.150390625));
  CHECK(overlong_penalty(o, 18432) == Approx(-.5));
  CHECK(overlong_penalty(o, 20480) == Approx(-1));
}
