// From samples to advantages: each stage against the formula it stands for, with scores that are missing or not numbers.
#include <doctest/doctest.h>
#include <cmath>
#include <limits>
#include <random>
#include <vector>
#include <weft/engine/cpu.hpp>
#include <weft/stages/advantage.hpp>
#include <weft/stages/reward.hpp>

using namespace weft;
using namespace weft::rl;
using doctest::Approx;

namespace {
f32 const no_number = std::numeric_limits<f32>::quiet_NaN(), too_large = std::numeric_limits<f32>::infinity();
constexpr size_t room = 6;
struct scorer {  // the score that stands in the first token
  std::vector<reward_result> answers;
  std::vector<i32> asked, rows;
  static reward_result score(void* me, i32 row, i32 const* ids, i32 count) {
    auto& s = *static_cast<scorer*>(me);
    s.asked.push_back(ids[0]), s.rows.push_back(row);
    CHECK((count > 0 && count <= i32(room)));
    return s.answers[size_t(ids[0])];
  }
};
using scoring_graph = graph<feed<rows<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<finishes<training>>,
                            at<host, reward<training>>, include_scored, group_advantage, keep<scores<training>>, keep<included>,
                            keep<response_mask>, keep<advantages>, keep<group_drops>>;
struct groups {
  size_t prompts, group;
  std::vector<reward_result> answers;  // of each sample, if it is asked
  std::vector<i32> lengths, finishes, rows;
};
struct outcome {
  std::vector<reward_result> scores;
  std::vector<i32> included, mask, drops;
  std::vector<f32> advantages;
  std::vector<i32> asked, rows;
};
outcome play(groups const& in, group_baseline const& o) {
  scorer s{in.answers, {}, {}};
  auto g = bind<scoring_graph>(cpu{}, prompt<training>{{in.prompts}}, group<training>{{in.group}}, position<training>{{room}},
                               reward_source<training>{&s, &scorer::score}, o);
  g.executor().poison = true;
  for (size_t i = 0; i < in.lengths.size(); ++i) {
    for (size_t t = 0; t < room; ++t) g.view_of<tokens<training>>().flat(i * room + t) = t ? -1 : i32(i);
    g.view_of<lengths<training>>().flat(i) = in.lengths[i];
    g.view_of<finishes<training>>().flat(i) = in.finishes[i];
  }
  for (size_t p = 0; p < in.prompts; ++p) g.view_of<rows<training>>()(p) = in.rows[p];
  g.step();
  auto const all = [&]<class P>(P*) {
    auto const v = g.template view_of<P>();
    return std::vector(v.begin(), v.end());
  };
  return {all((scores<training>*)nullptr),
          all((included*)nullptr),
          all((response_mask*)nullptr),
          all((group_drops*)nullptr),
          all((advantages*)nullptr),
          s.asked,
          s.rows};
}
// The formulas of the estimators over the samples that have a score.
std::vector<double> expected(groups const& in, std::vector<i32> const& use, size_t p, group_baseline const& o) {
  double n = 0, sum = 0, squares = 0, weighted = 0, length = 0;
  for (size_t s = p * in.group; s < (p + 1) * in.group; ++s) {
    if (!use[s]) continue;
    double const x = double(in.answers[s].value);
    n += 1, sum += x, weighted += x * in.lengths[s], length += in.lengths[s];
  }
  for (size_t s = p * in.group; s < (p + 1) * in.group; ++s)
    if (use[s]) squares += std::pow(double(in.answers[s].value) - sum / n, 2);
  double best = -1e9, second = -1e9;
  for (size_t s = p * in.group; s < (p + 1) * in.group; ++s) {
    if (!use[s]) continue;
    double const x = double(in.answers[s].value);
    if (x > best) second = best, best = x;
    else second = std::max(second, x);
  }
  std::vector<double> a(in.group);
  for (size_t g = 0; g < in.group; ++g) {
    size_t const s = p * in.group + g;
    double const x = double(in.answers[s].value);
    if (use[s] && o.estimator == group_estimator::reinforce_plus_plus) a[g] = x;
    if (!use[s] || n < 2) continue;
    switch (o.estimator) {
      case group_estimator::grpo:
        a[g] = (x - sum / n) / (o.grpo.norm_by_std ? std::sqrt(squares / (n - 1)) + o.grpo.epsilon : 1);
        break;
      case group_estimator::centred:
      case group_estimator::gpg:
      case group_estimator::reinforce_plus_plus_baseline:
        a[g] = x - sum / n;
        break;
      case group_estimator::grpo_passk:
        a[g] = x == best ? (best - second) / (o.grpo.norm_by_std ? std::sqrt(squares / (n - 1)) + o.grpo.epsilon : 1) : 0;
        break;
      case group_estimator::reinforce_plus_plus:
        break;
      case group_estimator::rloo:
        a[g] = x - (sum - x) / (n - 1);
        break;
      case group_estimator::opo:
        a[g] = x - weighted / length;
        break;
    }
  }
  return a;
}
}  // namespace

TEST_CASE("a sample without a number is left out of its group, its mask and its advantage, whatever the estimator") {
  std::mt19937 random(1);
  std::normal_distribution<f32> normal;
  size_t lonely = 0, left_out = 0;
  for (int round = 0; round < 200; ++round) {
    groups in{1 + random() % 4, 2 + random() % 4, {}, {}, {}, {}};
    for (size_t p = 0; p < in.prompts; ++p) in.rows.push_back(random() % 7 ? i32(10 + p) : -1);
    for (size_t s = 0; s < in.prompts * in.group; ++s) {
      int const kind = int(random() % 12);
      in.answers.push_back({kind == 0   ? no_number
                            : kind == 1 ? too_large
                                        : normal(random),
                            kind == 2   ? reward_result::error
                            : kind == 3 ? reward_result::timeout
                                        : reward_result::scored});
      in.lengths.push_back(random() % 6 ? 1 + i32(random() % room) : 0);
      in.finishes.push_back(i32(random() % 9 ? rollout::finish::length : rollout::finish::aborted));
    }
    group_baseline o;
    o.estimator = group_estimator(round % 8);
    o.grpo.norm_by_std = round % 3 > 0;
    CAPTURE(round);
    auto const out = play(in, o);
    std::vector<i32> use, asked;
    for (size_t s = 0; s < in.lengths.size(); ++s) {
      bool const ask = in.rows[s / in.group] >= 0 && in.lengths[s] > 0 && in.finishes[s] != i32(rollout::finish::aborted);
      bool const finite = std::isfinite(in.answers[s].value);
      if (ask) asked.push_back(i32(s));
      use.push_back(ask && finite && in.answers[s].what == reward_result::scored);
      CHECK(out.scores[s].what == (!ask                                          ? reward_result::absent
                                   : in.answers[s].what != reward_result::scored ? in.answers[s].what
                                   : finite                                      ? reward_result::scored
                                                                                 : reward_result::not_finite));
      CHECK(out.scores[s].value == (use[s] ? in.answers[s].value
                                    : out.scores[s].what == reward_result::error || out.scores[s].what == reward_result::timeout
                                        ? in.answers[s].value
                                        : 0));
    }
    CHECK(out.asked == asked);
    for (size_t i = 0; i < asked.size(); ++i) CHECK(out.rows[i] == in.rows[size_t(asked[i]) / in.group]);
    CHECK(out.included == use);
    for (size_t p = 0; p < in.prompts; ++p) {
      i32 scored = 0;
      for (size_t g = 0; g < in.group; ++g) scored += use[p * in.group + g];
      CHECK(out.drops[p] == (scored < 2 && o.estimator != group_estimator::reinforce_plus_plus));  // which needs no group
      lonely += scored == 1;
      auto const a = expected(in, use, p, o);
      for (size_t g = 0; g < in.group; ++g)
        for (size_t t = 0; t < room; ++t) {
          size_t const s = p * in.group + g, at = s * room + t;
          bool const counts = use[s] && i32(t) < in.lengths[s];
          CHECK(out.mask[at] == counts);
          if (counts) CHECK(out.advantages[at] == Approx(a[g]).epsilon(1e-5).scale(1));
          else CHECK(out.advantages[at] == 0);
          left_out += !use[s];
        }
    }
  }
  CHECK((lonely > 10 && left_out > 100));
}
TEST_CASE("a group of one keeps its score, and drops nothing") {
  groups const in{3,         1,         {{0.5f, reward_result::scored}, {no_number, reward_result::scored}, {-2, reward_result::scored}},
                  {2, 3, 6}, {1, 1, 1}, {0, 1, 2}};
  for (auto estimator : {group_estimator::centred, group_estimator::rloo}) {
    auto const out = play(in, {{}, estimator});
    CHECK(out.advantages[0] == 0.5f);
    CHECK(out.advantages[2 * room + 5] == -2);
    for (size_t t = 0; t < room; ++t) CHECK(out.advantages[room + t] == 0);
    CHECK(out.drops == std::vector<i32>{0, 0, 0});
  }
  CHECK(play(in, {}).advantages[0] == Approx(0.5));
}
TEST_CASE("equal scores have no advantage, to the bit") {
  groups const in{1, 4, std::vector<reward_result>(4, {0.1f, reward_result::scored}), {1, 2, 3, 4}, {1, 1, 1, 1}, {0}};
  for (auto estimator : {group_estimator::grpo, group_estimator::centred, group_estimator::rloo, group_estimator::opo})
    for (f32 a : play(in, {{}, estimator}).advantages) CHECK(a == 0);
}

namespace {
template <class... Ref> using value_graph =
    graph<feed<scores<training>>, feed<lengths<training>>, feed<log_probs<training>>, feed<Ref>..., feed<values>, feed<kl_coefficient>,
          include_scored, rewards_of_tokens, gae, merge_moments, whiten, keep<included>, keep<token_rewards>, keep<kl_means>,
          keep<advantages>, keep<returns>, keep<batch_moments>>;
struct column {
  std::vector<double> reward, advantage, target;
  double kl;
};

template <class... Ref> void check_values(objective::kl_estimator estimator, double beta) {
  constexpr bool with_ref = sizeof...(Ref) > 0;
  std::mt19937 random(7);
  std::normal_distribution<f32> normal;
  for (int round = 0; round < 50; ++round) {
    size_t const prompts = 1 + random() % 3, group_size = 1 + random() % 3, samples = prompts * group_size;
    objective::gae_settings const settings{0.9, 0.8};
    auto g = bind<value_graph<Ref...>>(cpu{}, prompt<training>{{prompts}}, group<training>{{group_size}}, position<training>{{room}},
                                       settings, kl_in_reward{estimator});
    g.executor().poison = true;
    g.template view_of<kl_coefficient>()() = f32(beta);
    auto const old = g.template view_of<log_probs<training>>();
    auto const v = g.template view_of<values>();
    std::vector<f32> ref(samples * room);
    std::vector<i32> use;
    for (size_t s = 0; s < samples; ++s) {
      int const kind = int(random() % 5);
      g.template view_of<scores<training>>().flat(s) = {normal(random), kind == 0 ? reward_result::not_finite : reward_result::scored};
      g.template view_of<lengths<training>>().flat(s) = 1 + i32(random() % room);
      use.push_back(kind != 0);
    }
    for (size_t i = 0; i < samples * room; ++i) {  // what is not a token holds NaN
      bool const token = i32(i % room) < g.template view_of<lengths<training>>().flat(i / room);
      old.flat(i) = token ? -std::abs(normal(random)) : no_number;
      v.flat(i) = token ? normal(random) : no_number;
      ref[i] = token ? old.flat(i) + 0.5f * normal(random) : no_number;
    }
    ([&] { std::copy(ref.begin(), ref.end(), g.template view_of<Ref>().data); }(), ...);
    g.step();
    double count = 0, sum = 0, squares = 0;
    std::vector<column> all;
    for (size_t s = 0; s < samples; ++s) {
      auto const n = size_t(g.template view_of<lengths<training>>().flat(s));
      column c{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n), 0};
      for (size_t t = 0; t < n && with_ref && beta != 0; ++t) {
        double const d = double(ref[s * room + t]) - double(old.flat(s * room + t));
        double const kl = estimator == objective::kl_estimator::k1   ? -d
                          : estimator == objective::kl_estimator::k2 ? d * d / 2
                                                                     : std::exp(d) - d - 1;
        c.reward[t] = -double(f32(beta)) * kl;
        c.kl += kl / double(n);
      }
      c.reward[n - 1] += double(g.template view_of<scores<training>>().flat(s).value);
      for (size_t t = n; t-- > 0;) {  // the sum of discounted errors, written out
        double factor = 1;
        for (size_t k = t; k < n; ++k, factor *= settings.gamma * settings.lambda)
          c.advantage[t] +=
              factor * (c.reward[k] + settings.gamma * (k + 1 < n ? double(v.flat(s * room + k + 1)) : 0) - double(v.flat(s * room + k)));
        c.target[t] = c.advantage[t] + double(v.flat(s * room + t));
        if (use[s]) count += 1, sum += c.advantage[t];
      }
      all.push_back(c);
    }
    for (size_t s = 0; s < samples; ++s)
      for (double a : all[s].advantage)
        if (use[s]) squares += (a - sum / count) * (a - sum / count);
    double const inverse = count > 1 ? 1 / std::sqrt(squares / (count - 1) + 1e-8) : 0;
    auto const r = g.template view_of<token_rewards>();
    auto const a = g.template view_of<advantages>();
    auto const target = g.template view_of<returns>();
    for (size_t s = 0; s < samples; ++s) {
      if (use[s]) CHECK(g.template view_of<kl_means>().flat(s) == Approx(all[s].kl).epsilon(1e-5).scale(1));
      for (size_t t = 0; t < room; ++t) {
        size_t const i = s * room + t;
        if (!use[s] || t >= all[s].reward.size()) {
          CHECK((r.flat(i) == 0 && a.flat(i) == 0 && target.flat(i) == 0));
          continue;
        }
        CHECK(r.flat(i) == Approx(all[s].reward[t]).epsilon(1e-5).scale(1));
        CHECK(target.flat(i) == Approx(all[s].target[t]).epsilon(1e-5).scale(1));
        CHECK(a.flat(i) == Approx((all[s].advantage[t] - sum / count) * inverse).epsilon(1e-4).scale(1));
      }
    }
    CHECK(g.template view_of<batch_moments>()().count == count);
  }
}
}  // namespace
TEST_CASE("token rewards, GAE and whitening over the samples that count; NaN elsewhere is never read") {
  for (auto estimator : {objective::kl_estimator::k1, objective::kl_estimator::k2, objective::kl_estimator::k3})
    check_values<ref_log_probs>(estimator, 0.3);
  check_values<ref_log_probs>(objective::kl_estimator::k1, 0);
  check_values<>(objective::kl_estimator::k1, 0.3);
}
