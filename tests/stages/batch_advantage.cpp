// Advantages of the whole batch: token rewards summed, whitening over tokens, GPG's factor, ReMax's baseline.
#include <doctest/doctest.h>
#include <cmath>
#include <random>
#include <vector>
#include <weft/engine/cpu.hpp>
#include <weft/stages/advantage.hpp>
#include <weft/stages/reward.hpp>

using namespace weft;
using namespace weft::rl;
using doctest::Approx;

namespace {
constexpr size_t prompt_count = 3, group_size = 4, room = 5, all = prompt_count * group_size;
using batch_graph = graph<feed<scores<training>>, feed<lengths<training>>, feed<log_probs<training>>, feed<ref_log_probs>,
                          feed<kl_coefficient>, include_scored, rewards_of_tokens, group_advantage, merge_moments, scale_advantages,
                          keep<advantages>, keep<group_drops>, keep<kl_means>, keep<included>>;
using remax_graph =
    graph<feed<scores<training>>, feed<lengths<training>>, feed<log_probs<training>>, feed<kl_coefficient>, feed<scores<greedy>>,
          include_scored, rewards_of_tokens, remax_advantage, keep<advantages>, keep<group_drops>, keep<kl_means>, keep<included>>;

struct columns {
  std::vector<f32> score, lp, ref;
  std::vector<i32> length, scored;
  explicit columns(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<f32> normal;
    for (size_t i = 0; i < all; ++i) {
      score.push_back(random() % 3 ? normal(random) : 0);
      length.push_back(1 + i32(random() % room));
      scored.push_back(i % 7 != 2);
    }
    for (size_t i = 0; i < all * room; ++i) lp.push_back(normal(random)), ref.push_back(normal(random));
  }
};
template <class Graph> void fill(auto& g, columns const& c, f32 beta) {
  for (size_t i = 0; i < all; ++i) {
    g.template view_of<scores<training>>().flat(i) = {c.score[i], c.scored[i] ? reward_result::scored : reward_result::timeout};
    g.template view_of<lengths<training>>().flat(i) = c.length[i];
  }
  for (size_t i = 0; i < all * room; ++i) {
    g.template view_of<log_probs<training>>().flat(i) = c.lp[i];
    if constexpr (std::is_same_v<Graph, batch_graph>) g.template view_of<ref_log_probs>().flat(i) = c.ref[i];
  }
  g.template view_of<kl_coefficient>()() = beta;
}
std::vector<f32> advantages_of(columns const& c, group_baseline const& o, f32 beta) {
  auto g = bind<batch_graph>(cpu{}, prompt<training>{{prompt_count}}, group<training>{{group_size}}, position<training>{{room}}, o,
                             kl_in_reward{});
  g.executor().poison = true;
  fill<batch_graph>(g, c, beta);
  g.step();
  auto const a = g.view_of<advantages>();
  return {a.begin(), a.end()};
}
double reward_at(columns const& c, size_t i, size_t t, double beta) {  // the score at the last token, minus beta (lp - ref)
  return (t + 1 == size_t(c.length[i]) ? double(c.score[i]) : 0) - beta * double(c.lp[i * room + t] - c.ref[i * room + t]);
}
}  // namespace

TEST_CASE("REINFORCE++: discounted returns of token rewards, whitened over every token that counts") {
  columns const c(3);
  for (double gamma : {1.0, 0.9})
    for (double beta : {0.0, 0.3}) {
      group_baseline o;
      o.estimator = group_estimator::reinforce_plus_plus, o.gamma = gamma;
      auto const a = advantages_of(c, o, f32(beta));
      std::vector<double> g(all * room);
      double n = 0, sum = 0, squares = 0;
      for (size_t i = 0; i < all; ++i) {
        double from_here = 0;
        for (size_t t = size_t(c.length[i]); c.scored[i] && t-- > 0;)
          g[i * room + t] = from_here = reward_at(c, i, t, beta) + gamma * from_here;
        for (size_t t = 0; c.scored[i] && t < size_t(c.length[i]); ++t) n += 1, sum += g[i * room + t];
      }
      for (size_t i = 0; i < all; ++i)
        for (size_t t = 0; c.scored[i] && t < size_t(c.length[i]); ++t) squares += std::pow(g[i * room + t] - sum / n, 2);
      for (size_t i = 0; i < all; ++i)
        for (size_t t = 0; t < room; ++t) {
          bool const counts = c.scored[i] && t < size_t(c.length[i]);
          CHECK(double(a[i * room + t]) ==
                Approx(counts ? (g[i * room + t] - sum / n) / std::sqrt(squares / (n - 1) + 1e-8) : 0).epsilon(1e-4));
        }
    }
}
TEST_CASE(
    "with KL in the reward the score of a group estimator is the sum of token rewards; GPG multiplies by answers / answers other than 0") {
  columns const c(5);
  double const beta = 0.2;
  for (auto estimator : {group_estimator::centred, group_estimator::gpg}) {
    group_baseline o;
    o.estimator = estimator;
    auto const a = advantages_of(c, o, f32(beta));
    std::vector<double> s(all);
    double scored = 0, other = 0;
    for (size_t i = 0; i < all; ++i)
      if (c.scored[i]) {
        for (size_t t = 0; t < size_t(c.length[i]); ++t) s[i] += reward_at(c, i, t, beta);
        scored += 1, other += s[i] != 0;
      }
    for (size_t p = 0; p < prompt_count; ++p) {
      double n = 0, mean = 0;
      for (size_t i = p * group_size; i < (p + 1) * group_size; ++i)
        if (c.scored[i]) n += 1, mean += s[i];
      for (size_t i = p * group_size; i < (p + 1) * group_size; ++i)
        CHECK(double(a[i * room]) ==
              Approx(c.scored[i] ? (s[i] - mean / n) * (estimator == group_estimator::gpg ? scored / other : 1) : 0).epsilon(1e-4));
    }
  }
  columns zeros(6);
  std::fill(zeros.score.begin(), zeros.score.end(), 0.0f);
  group_baseline o;
  for (auto e : {group_estimator::gpg, group_estimator::reinforce_plus_plus_baseline, group_estimator::reinforce_plus_plus}) {
    o.estimator = e;
    for (f32 x : advantages_of(zeros, o, 0)) CHECK(x == 0);
  }
}
TEST_CASE("ReMax: a greedy answer's score is the baseline; without one the prompt is left out and counted") {
  columns const c(7);
  auto g = bind<remax_graph>(cpu{}, prompt<training>{{prompt_count}}, group<training>{{group_size}}, position<training>{{room}},
                             prompt<greedy>{{prompt_count}}, group<greedy>{{1}}, kl_in_reward{});
  g.executor().poison = true;
  fill<remax_graph>(g, c, 0);
  for (size_t p = 0; p < prompt_count; ++p)
    g.view_of<scores<greedy>>().flat(p) = {f32(p) / 2, p == 1 ? reward_result::error : reward_result::scored};
  g.step();
  for (size_t i = 0; i < all; ++i) {
    size_t const p = i / group_size;
    CHECK(g.view_of<group_drops>()(p) == (p == 1));
    for (size_t t = 0; t < room; ++t) {
      bool const counts = c.scored[i] && p != 1 && t < size_t(c.length[i]);
      CHECK(g.view_of<advantages>().flat(i * room + t) == (counts ? c.score[i] - f32(p) / 2 : 0));
    }
  }
}
