// Rollout correction: weights, rejection and sums of a batch against their formulas; samples that do not count weigh nothing.
#include <doctest/doctest.h>
#include <cmath>
#include <random>
#include <vector>
#include <weft/engine/cpu.hpp>
#include <weft/stages/correct.hpp>

using namespace weft;
using namespace weft::rl;
using doctest::Approx;

namespace {
constexpr size_t prompt_count = 4, group_size = 3, room = 5, all = prompt_count * group_size;
using correction = graph<feed<old_log_probs>, feed<log_probs<training>>, feed<response_mask>, feed<included>, weigh_rollout,
                         merge_corrections, normalize_rollout_weights, keep<rollout_weights>, keep<trained>, keep<correction_all>>;
}  // namespace

TEST_CASE("weights by token and by sequence, truncated and IcePop, rejected, normalised") {
  std::mt19937 random(4);
  std::normal_distribution<f32> normal;
  std::vector<f32> old(all * room), roll(all * room);
  std::vector<i32> length(all), use(all);
  for (size_t i = 0; i < old.size(); ++i) old[i] = -1 + 0.3f * normal(random), roll[i] = old[i] + 0.5f * normal(random);
  for (size_t i = 0; i < all; ++i) length[i] = 1 + i32(random() % room), use[i] = i % 5 != 3;
  for (int round = 0; round < 16; ++round) {
    CAPTURE(round);
    objective::rollout_correction o;
    o.rollout_is = round % 2 ? objective::rollout_level::sequence : objective::rollout_level::token;
    o.bound = round / 2 % 2 ? objective::rollout_bound::icepop : objective::rollout_bound::truncate;
    o.threshold = 1.5, o.lower = 0.7, o.weigh = round != 12, o.batch_normalize = round / 8 % 2;
    if (round / 4 % 2) o.reject = objective::rejection::k1, o.reject_above = 0.15;
    auto g = bind<correction>(cpu{}, prompt<training>{{prompt_count}}, group<training>{{group_size}}, position<training>{{room}}, o);
    g.executor().poison = true;
    auto const counts = [&](size_t i, size_t t) { return use[i] && t < size_t(length[i]); };
    for (size_t i = 0; i < all; ++i) {
      g.view_of<included>().flat(i) = use[i];
      for (size_t t = 0; t < room; ++t) {
        g.view_of<response_mask>().flat(i * room + t) = counts(i, t);
        g.view_of<old_log_probs>().flat(i * room + t) = counts(i, t) ? old[i * room + t] : NAN;
        g.view_of<log_probs<training>>().flat(i * room + t) = counts(i, t) ? roll[i * room + t] : NAN;
      }
    }
    g.step();
    auto const& sums = g.view_of<correction_all>()();
    std::vector<double> w(all * room);
    double tokens = 0, total = 0, rejected = 0, kl = 0, square = 0, sequences = 0;
    for (size_t i = 0; i < all; ++i) {
      double whole = 0, n = 0;
      for (size_t t = 0; t < room; ++t)
        if (counts(i, t)) whole += double(old[i * room + t]) - double(roll[i * room + t]), n += 1;
      bool const reject = o.reject != objective::rejection::none && n > 0 && std::abs(whole / n) > o.reject_above;
      CHECK(g.view_of<trained>().flat(i) == (use[i] && !reject));
      rejected += reject, sequences += n > 0;
      for (size_t t = 0; t < room; ++t) {
        if (!counts(i, t)) continue;
        double const d = double(old[i * room + t]) - double(roll[i * room + t]);
        double x = std::exp(round % 2 ? whole : d);
        if (round / 2 % 2) x = x > 1.5 || x < 0.7 ? 0 : x;
        else x = std::min(x, 1.5);
        if (!o.weigh) x = 1;
        w[i * room + t] = x, total += x, tokens += 1, kl -= d, square += std::exp(2 * d);
      }
    }
    CHECK(sums.weights.tokens == tokens);
    CHECK(sums.rejected == rejected);
    CHECK(sums.sequences == sequences);
    CHECK(sums.weights.k1 == Approx(kl));
    CHECK(sums.square == Approx(square));
    for (size_t i = 0; i < all * room; ++i)
      CHECK(double(g.view_of<rollout_weights>().flat(i)) == Approx(o.batch_normalize ? w[i] * tokens / total : w[i]).epsilon(1e-5));
  }
}
