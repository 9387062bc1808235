// Advantages: known values, groups that are odd, slots that do not count, whitening over any cut of the batch.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <weft/objective/objective.hpp>

using namespace weft;
using namespace weft::objective;
using doctest::Approx;

namespace {
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();  // in slots that nobody may read
using numbers = std::vector<double>;

numbers grpo_of(numbers const& score, group_settings const& o = {}, std::vector<i32> const& scored = {}) {
  numbers a(score.size(), nothing);
  grpo(o, score.size(), score.data(), scored.empty() ? nullptr : scored.data(), a.data());
  return a;
}
void close(numbers const& is, numbers const& wanted) {
  REQUIRE(is.size() == wanted.size());
  for (size_t i = 0; i < is.size(); ++i) CHECK(is[i] == Approx(wanted[i]).epsilon(1e-8));
}
}  // namespace

TEST_CASE("GAE passes over tokens that the policy did not produce, and whitens over the batch") {
  numbers const reward{0, 0, nothing, 1, nothing, 0, .5, 0, nothing, nothing},
      value{.1, .2, nothing, .4, nothing, .3, .1, .2, nothing, nothing};
  std::vector<i32> const mask{1, 1, 0, 1, 0, 1, 1, 1, 0, 0};
  numbers a(10, nothing), target(10, nothing);
  moments rows[2];
  for (size_t r : {0, 1}) {
    gae({.99, .95}, 5, &reward[r * 5], &value[r * 5], &mask[r * 5], &a[r * 5], &target[r * 5]);
    rows[r] = moments_of(5, &a[r * 5], &mask[r * 5]);
  }
  close(a, {.81306215, .7603, 0, .6, 0, .18451095, .4099, -.2, 0, 0});
  close(target, {.91306215, .9603, 0, 1, 0, .48451095, .5099, 0, 0, 0});
  auto const all = merged(2, rows);
  for (size_t r : {0, 1}) whiten(5, all, &mask[r * 5], &a[r * 5]);
  close(a, {.999482006, .862544006, 0, .44650407, 0, -.631849252, -.046878286, -1.629802532, 0, 0});
}

TEST_CASE("whitening: mean 0, variance 1, the same bits however the rows are spread over devices") {
  std::mt19937 draw(3);
  std::normal_distribution<double> normal(1e4, 1e-2);  // far from 0: cancellation would show
  size_t const rows = 40, width = 9;
  numbers x(rows * width);
  std::vector<i32> mask(x.size());
  for (size_t i = 0; i < x.size(); ++i) mask[i] = draw() % 3 != 0, x[i] = mask[i] ? normal(draw) : nothing;
  std::vector<moments> of_row;
  for (size_t r = 0; r < rows; ++r) of_row.push_back(moments_of(width, &x[r * width], &mask[r * width]));
  auto const all = merged(rows, of_row.data());

  long double n = 0, mean = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (mask[i]) n += 1, mean += (long double)x[i];
  mean /= n;
  for (size_t i = 0; i < x.size(); ++i)
    if (mask[i]) squares += ((long double)x[i] - mean) * ((long double)x[i] - mean);
  CHECK(all.count == double(n));
  CHECK(all.mean == Approx(double(mean)).epsilon(1e-15));
  CHECK(all.squares == Approx(double(squares)).epsilon(1e-9));

  double sum = 0, square = 0;
  for (size_t r = 0; r < rows; ++r) whiten(width, all, &mask[r * width], &x[r * width]);
  for (size_t i = 0; i < x.size(); ++i) {
    if (!mask[i]) CHECK(x[i] == 0);
    sum += x[i], square += x[i] * x[i];
  }
  CHECK(std::abs(sum / double(n)) < 1e-9);
  CHECK(square / double(n - 1) == Approx(1).epsilon(1e-3));  // 1e-8 beside a variance of 1e-4
}

TEST_CASE("one value has no variance: it becomes 0, and adding the mean back restores it") {
  std::vector<i32> const mask{0, 1};
  for (bool shift : {true, false}) {
    numbers x{nothing, 3};
    whiten(2, moments_of(2, x.data(), mask.data()), mask.data(), x.data(), shift);
    close(x, {0, shift ? 0. : 3.});
  }
  CHECK(merged(0, nullptr).count == 0);
}

TEST_CASE("GRPO and its relatives: values that are known") {
  numbers const s{1, 0, 0, 1}, one{1, 0, 0, 0};
  group_settings trl, population, dr;
  trl.epsilon = population.epsilon = 1e-4;
  population.population = true;
  dr.norm_by_std = false;
  close(grpo_of(s), {.866023904, -.866023904, -.866023904, .866023904});
  close(grpo_of(s, trl), {.86587543, -.86587543, -.86587543, .86587543});
  close(grpo_of(s, population), {.99980004, -.99980004, -.99980004, .99980004});
  close(grpo_of(s, dr), {.5, -.5, -.5, .5});
  close(grpo_of(one), {1.499997, -.499999, -.499999, -.499999});
  close(grpo_of(one, trl), {1.49970006, -.49990002, -.49990002, -.49990002});
  close(grpo_of(one, population), {1.7316509, -.577216967, -.577216967, -.577216967});
  close(grpo_of(one, dr), {.75, -.25, -.25, -.25});
  numbers a(4);
  rloo(4, s.data(), nullptr, a.data());
  close(a, {.666666667, -.666666667, -.666666667, .666666667});
  rloo(4, one.data(), nullptr, a.data());
  close(a, {1, -.333333333, -.333333333, -.333333333});
  i32 const length[] = {3, 5, 2, 10};
  opo(4, s.data(), length, nullptr, a.data());
  close(a, {.35, -.65, -.65, .35});
  numbers const lead{.2, .9, .4, .1};
  grpo_passk(dr, 4, lead.data(), nullptr, a.data());
  close(a, {0, .5, 0, 0});
}

TEST_CASE_TEMPLATE("equal scores give exactly 0, whatever the mean rounds to", T, float, double) {
  for (T s : {T(.1), T(1) / 3, T(-7.3), T(1e7) / 7})
    for (size_t n = 2; n < 40; ++n) {
      std::vector<T> const score(n, s), zeros(n, 0);
      std::vector<i32> const length(n, 3);
      std::vector<T> a(n, 1);
      auto zero = [&] {
        CHECK(a == zeros);
        a.assign(n, 1);
      };
      grpo({}, n, score.data(), nullptr, a.data()), zero();
      centred(n, score.data(), nullptr, a.data()), zero();
      rloo(n, score.data(), nullptr, a.data()), zero();
      opo(n, score.data(), length.data(), nullptr, a.data()), zero();
      gpg(2, 1, n, score.data(), nullptr, a.data()), zero();
      grpo_passk({}, n, score.data(), nullptr, a.data()), zero();
    }
}

TEST_CASE("answers without a score are left out of the group; what they hold is never read") {
  auto const full = grpo_of({1, 0, 1}), holed = grpo_of({1, nothing, 0, 1}, {}, {1, 0, 1, 1});
  close(holed, {full[0], 0, full[1], full[2]});
  numbers a(4, nothing);
  numbers const s{nothing, 5, nothing, 2};
  std::vector<i32> const scored{0, 1, 0, 1};
  CHECK(rloo(4, s.data(), scored.data(), a.data()) == group_result::used);
  close(a, {0, 3, 0, -3});
}

TEST_CASE("a group of one keeps its score; a group left with one answer gets 0 and is counted") {
  numbers const s{3, nothing};
  numbers a(2, nothing);
  std::vector<i32> const scored{1, 0}, none{0, 0};
  CHECK(grpo({}, 2, s.data(), scored.data(), a.data()) == group_result::dropped);
  close(a, {0, 0});
  CHECK(rloo(2, s.data(), none.data(), a.data()) == group_result::dropped);
  close(a, {0, 0});
  close(grpo_of({3}), {3 / (1 + 1e-6)});
  rloo(1, s.data(), nullptr, a.data());
  CHECK(a[0] == 3);
  CHECK(grpo({}, 1, s.data() + 1, none.data(), a.data()) == group_result::used);
  CHECK(a[0] == 0);
}

TEST_CASE("returns and ReMax pass over slots that do not count") {
  numbers const reward{1, nothing, 2, nothing};
  std::vector<i32> const mask{1, 0, 1, 0};
  numbers target(4, nothing), a(4, nothing);
  returns(.5, 4, reward.data(), mask.data(), target.data());
  close(target, {2, 0, 2, 0});
  remax(4, reward.data(), 1.0, mask.data(), a.data(), target.data());
  close(target, {3, 0, 2, 0});
  close(a, {2, 0, 1, 0});
}

TEST_CASE("decoupled GAE: returns with the critic's lambda, advantages with the policy's") {
  numbers const reward{0, 0, nothing, 1, .5}, value{.1, .2, nothing, .4, .3};
  std::vector<i32> const mask{1, 1, 0, 1, 1};
  auto run = [&](gae_settings const& s) {
    std::pair<numbers, numbers> out{numbers(5), numbers(5)};
    gae(s, 5, reward.data(), value.data(), mask.data(), out.first.data(), out.second.data());
    return out;
  };
  auto const policy = run({1, .9}), critic = run({1, 1}), both = run({1, .9, 1});
  close(both.first, policy.first);
  close(both.second, critic.second);
  close(critic.second, {1.5, 1.5, 0, 1.5, .5});  // lambda 1: what is still to come
  CHECK(adaptive_lambda(10) == 0);               // 1 - 1 / 0.5 is negative
  CHECK(adaptive_lambda(40) == Approx(.5));
  close(run({1, 1, 1, true}).first, run({1, 0, 1}).first);  // four tokens
}

TEST_CASE("GDPO adds up what each reward alone would give") {
  numbers const score{1, 0, 0, 1, .3, .1, .2, .9}, weight{.7, .3};
  numbers one(4), a(4);
  gdpo({}, 2, weight.data(), 4, score.data(), nullptr, one.data(), a.data());
  auto const first = grpo_of({1, 0, 0, 1}), second = grpo_of({.3, .1, .2, .9});
  for (size_t j = 0; j < 4; ++j) CHECK(a[j] == Approx(.7 * first[j] + .3 * second[j]));
  std::vector<i32> const applies{1, 1, 1, 1, 0, 0, 1, 0};  // the second reward is left with one answer
  CHECK(gdpo({}, 2, weight.data(), 4, score.data(), applies.data(), one.data(), a.data()) == group_result::used);
  for (size_t j = 0; j < 4; ++j) CHECK(a[j] == Approx(.7 * first[j]));
}

TEST_CASE("the optimal token baseline, by hand") {
  numbers const reward{0, 1, nothing, 0, 0, 2}, lp{std::log(.5), std::log(.5), nothing, std::log(.25), std::log(.5), std::log(.5)};
  numbers const squares{.5, .5, nothing, .5, .5, .5};
  std::vector<i32> const mask{1, 1, 0, 1, 1, 1};
  numbers path(6), a(6, nothing), target(6, nothing);
  optimal_token_baseline(2, 3, reward.data(), lp.data(), squares.data(), (double*)nullptr, mask.data(), path.data(), a.data(),
                         target.data());
  // W: .5, 1 and 1, 1.5, 2; G: 1, 1 and 2, 2, 2
  double const first = (1 * .5 + 2 * 1) / 1.5, second = (1 * 1 + 2 * 1.5) / 2.5;
  close(a, {1 - first, 1 - second, 0, 2 - first, 2 - second, 2});  // a step that one answer has: no baseline
}
