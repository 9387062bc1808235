// Importance weights of the rollout, and rewards that are normalised as they run.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <weft/objective/reward.hpp>
#include <weft/objective/rollout_correction.hpp>

using namespace weft;
using namespace weft::objective;
using doctest::Approx;

namespace {
double const no = std::numeric_limits<double>::quiet_NaN();
struct sample {
  std::vector<double> old{-1, no, -1, -1, no}, rollout{-2, no, -1, -.1, no}, weight = std::vector<double>(5, no);
  std::vector<i32> mask{1, 0, 1, 1, 0};
  rollout_sums sums;
  bool rejected = false;
  explicit sample(rollout_correction const& c) {
    rejected = rollout_weights(c, 5, old.data(), rollout.data(), mask.data(), weight.data(), sums);
  }
};
}  // namespace

TEST_CASE("truncated weights of tokens and of the sequence") {
  sample const token({});
  CHECK(token.weight[0] == 2);
  CHECK(token.weight[2] == 1);
  CHECK(token.weight[3] == Approx(std::exp(-.9)));
  CHECK(token.weight[1] == 0);
  CHECK(token.sums.high == 1);
  CHECK(token.sums.low == 1);
  CHECK(token.sums.k1 == Approx(-(1 - .9)));
  CHECK(!token.rejected);

  rollout_correction c;
  c.rollout_is = rollout_level::sequence;
  sample const whole(c);
  for (size_t t : {0, 2, 3}) CHECK(whole.weight[t] == Approx(std::exp(.1)));
}

TEST_CASE("IcePop drops what lies outside, and batch normalisation makes the mean 1") {
  rollout_correction c;
  c.bound = rollout_bound::icepop;
  sample s(c);
  CHECK(s.weight == std::vector<double>{0, 0, 1, 0, 0});
  normalize_weights(5, s.sums, s.weight.data());
  CHECK(s.weight[2] == Approx(3));
  CHECK(effective_sample_size(s.sums) == Approx(1. / 3));
}

TEST_CASE("a sequence far from the policy is left out") {
  rollout_correction c;
  c.reject = rejection::k3;
  double const k3 = ((std::exp(1) - 2) + (std::exp(-.9) - .1)) / 3;
  c.reject_above = k3 * 1.01;
  CHECK(!sample(c).rejected);
  c.reject_above = k3 * .99;
  CHECK(sample(c).rejected);
  CHECK(sample(c).sums.rejected_tokens == 3);
}

TEST_CASE("the same policy has weights of exactly 1") {
  std::vector<float> const lp{-1.7f, -.3f, -12.f};
  std::vector<i32> const mask{1, 1, 1};
  std::vector<float> weight(3);
  rollout_sums sums;
  rollout_weights({}, 3, lp.data(), lp.data(), mask.data(), weight.data(), sums);
  CHECK(weight == std::vector<float>{1, 1, 1});
  CHECK(effective_sample_size(sums) == 1);
}

TEST_CASE("rewards: clipping and the running deviation") {
  CHECK(shaped({2, false}, 5, {}, {}) == 2);
  CHECK(shaped({0, false}, 5, {}, {}) == 5);
  moments const batch{5, 3, 16};  // deviation 2
  auto const first = next_deviation({}, batch), second = next_deviation(first, {5, 3, 64});
  CHECK(first.value == Approx(2));
  CHECK(second.value == Approx(.9 * 2 + .1 * 4));
  CHECK(shaped({0, true}, 5, batch, first) == Approx(1));
}
