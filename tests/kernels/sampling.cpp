#include <weft/kernels/sampling.hpp>

#include <algorithm>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
struct draw_result {
  std::vector<i32> count;
  double kept;
};

// the kept set by sorting, and its mass under softmax(logits / temperature)
std::vector<bool> kept_by_sorting(std::vector<float> const& logits, sampling const& s) {
  size_t const n = logits.size();
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (s.top_k >= 1) order.resize(std::min(n, size_t(s.top_k)));
  std::vector<double> p;
  double mass = 0, taken = 0;
  for (size_t i : order) p.push_back(std::exp((double(logits[i]) - double(logits[order[0]])) / double(s.temperature))), mass += p.back();
  std::vector<bool> kept(n);
  for (size_t r = 0; r < order.size(); ++r) {
    if (r > 0 && taken >= double(s.top_p) * mass) break;
    if (p[r] < double(s.min_p)) break;
    taken += p[r];
    kept[order[r]] = true;
  }
  return kept;
}
double chi_square(std::vector<i32> const& count, std::vector<double> const& p, double draws, size_t& cells) {
  double x = 0;
  cells = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] * draws >= 5) x += (count[i] - p[i] * draws) * (count[i] - p[i] * draws) / (p[i] * draws), ++cells;
  return x;
}
}  // namespace

TEST_CASE("philox4x32-10: the known answers of Random123") {
  auto const same = [](philox_words a, philox_words b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  CHECK(same(philox({{0, 0, 0, 0}}, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  CHECK(same(philox({{~0u, ~0u, ~0u, ~0u}}, ~u64{0}), {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  CHECK(same(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822),
             {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST_CASE("uniform takes 2^23 values, none of them 0 or 1, evenly") {
  bool inside = true, even = true;
  for (u32 i = 0; i < 1u << 23; ++i) {
    float const u = uniform(i << 9 | 0x1ff);
    inside = inside && u > 0 && u < 1;
    even = even && double(u) == (double(i) + 0.5) / double(1u << 23);
  }
  CHECK(inside);
  CHECK(even);
}

TEST_CASE_TEMPLATE("a one-hot distribution is sampled right 100000 times of 100000", T, float, double) {
  size_t const vocab = 50;
  std::vector<T> logits(vocab, T(-30)), room(vocab);
  logits[17] = 30;
  size_t right = 0;
  for (u32 draw = 0; draw < 100000; ++draw) {
    auto const d = sample_row(vocab, logits.data(), room.data(), sampling{}, token_rules{}, 5, draw, draw % 8, draw % 100);
    right += d.id == 17 && d.log_prob == 0 && d.log_kept == 0;
  }
  CHECK(right == 100000);
}

TEST_CASE("draws follow the distribution, filtered or not, biased or not (chi-square)") {
  size_t const vocab = 40, draws = 20000;
  auto const logits = help::values<float>(vocab, 1, 1.5);
  std::vector<float> room(vocab);
  i32 const forbidden[] = {3, 11}, bias_ids[] = {5, 7};
  float const bias[] = {1.5f, -2.0f};
  token_rules const free, ruled{38, 2, forbidden, 2, bias_ids, bias};
  sampling const settings[] = {{}, {0.7f}, {1.8f}, {1, 5}, {1, -1, 0.8f}, {1, -1, 1, 0.05f}, {0.9f, 20, 0.9f, 0.02f}};
  for (sampling const& s : settings)
    for (token_rules const* rules : {&free, &ruled}) {
      auto scores = logits;
      if (rules == &ruled) {
        for (int b = 0; b < 2; ++b) scores[size_t(bias_ids[b])] += bias[b];
        for (size_t i : {3, 11, 38, 39}) scores[i] = -1e30f;
      }
      auto const kept = kept_by_sorting(scores, s);
      std::vector<double> p(vocab);
      double sum = 0;
      for (size_t i = 0; i < vocab; ++i) sum += p[i] = kept[i] ? std::exp(double(scores[i]) / double(s.temperature)) : 0;
      for (double& x : p) x /= sum;
      std::vector<i32> count(vocab);
      bool outside = false;
      double worst = 0;
      for (u32 draw = 0; draw < draws; ++draw) {
        auto const d = sample_row(vocab, logits.data(), room.data(), s, *rules, 77, draw, 1, 2);
        REQUIRE(d.id >= 0);
        ++count[size_t(d.id)];
        outside = outside || !kept[size_t(d.id)];
        worst = std::fmax(worst, std::fabs(double(d.log_prob - d.log_kept) - std::log(p[size_t(d.id)])));
        CHECK(d.log_prob == log_prob_of(softmax_row(vocab, logits.data(), 1 / s.temperature), logits[size_t(d.id)], 1 / s.temperature));
      }
      CHECK_FALSE(outside);
      CHECK(worst < 2e-6);  // log_prob - log_kept is the log-prob of what was drawn from
      size_t cells = 0;
      double const x = chi_square(count, p, double(draws), cells);
      CHECK(x < double(cells) + 4 * std::sqrt(2.0 * double(cells)) + 4);
    }
}

TEST_CASE("kept sets are those of a sorted reference, ties included") {
  size_t const vocab = 60;
  std::vector<float> room(vocab);
  for (u64 seed = 0; seed < 12; ++seed) {
    auto logits = help::values<float>(vocab, seed, 2);
    if (seed % 3 == 0)
      for (float& x : logits) x = std::round(x);  // many ties
    for (sampling s : {sampling{1, 1},
                       {1, 7},
                       {1, 60},
                       {1, 1000},
                       {1, -1, 0.5f},
                       {1, -1, 0.999f},
                       {1, -1, 1e-6f},
                       {1, -1, 1, 0.3f},
                       {1, -1, 1, 1},
                       {0.5f, 10, 0.7f, 0.01f}}) {
      auto const kept = kept_by_sorting(logits, s);
      std::vector<bool> seen(vocab);
      for (u32 draw = 0; draw < 3000; ++draw)
        seen[size_t(sample_row(vocab, logits.data(), room.data(), s, token_rules{}, seed, draw, 0, 0).id)] = true;
      bool extra = false, missing = false;
      double sum = 0;
      for (size_t i = 0; i < vocab; ++i) sum += kept[i] ? std::exp(double(logits[i]) / double(s.temperature)) : 0;
      for (size_t i = 0; i < vocab; ++i) {
        extra = extra || (seen[i] && !kept[i]);
        missing = missing || (kept[i] && !seen[i] && std::exp(double(logits[i]) / double(s.temperature)) / sum > 0.01);
      }
      CHECK_FALSE(extra);
      CHECK_FALSE(missing);
    }
  }
}

TEST_CASE("greedy takes the best allowed score, the smaller id of equals, and records log-probs at temperature 1") {
  std::vector<float> logits{1, 5, 5, 2, 4}, room(5);
  sampling const greedy{0};
  auto const best = sample_row(5, logits.data(), room.data(), greedy, token_rules{}, 1, 2, 3, 4);
  CHECK(best.id == 1);
  CHECK(best.log_kept == 0);
  CHECK(best.log_prob == log_prob_of(softmax_row(5, logits.data(), 1.0f), 5.0f, 1.0f));
  i32 const forbidden[] = {1, 2}, bias_id[] = {0};
  float const bias[] = {10};
  CHECK(sample_row(5, logits.data(), room.data(), greedy, token_rules{5, 2, forbidden}, 1, 2, 3, 4).id == 4);
  CHECK(sample_row(5, logits.data(), room.data(), greedy, token_rules{3, 2, forbidden}, 1, 2, 3, 4).id == 0);
  CHECK(sample_row(5, logits.data(), room.data(), greedy, token_rules{5, 0, nullptr, 1, bias_id, bias}, 1, 2, 3, 4).id == 0);
  CHECK(inverse_temperature_of<float>(greedy) == 1);
}

TEST_CASE("ids beyond the limit are never drawn and count as lost mass") {
  std::vector<float> logits{0, 0, 0, 0}, room(4);
  for (u32 draw = 0; draw < 200; ++draw) {
    auto const d = sample_row(4, logits.data(), room.data(), sampling{}, token_rules{3}, 1, draw, 0, 0);
    CHECK(d.id < 3);
    CHECK(d.log_kept == doctest::Approx(std::log(0.75)).epsilon(1e-6));
  }
}

TEST_CASE("a row with a NaN or infinite logit, or with nothing left to draw, gives id -1") {
  for (sampling const& s : {sampling{}, sampling{0}, sampling{1, 3}, sampling{1, -1, 0.5f}})
    for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> logits(30, 1.0f), room(30);
      logits[29] = bad;
      CHECK(sample_row(30, logits.data(), room.data(), s, token_rules{}, 1, 2, 3, 4).id == -1);
      CHECK(sample_row(30, logits.data(), room.data(), s, token_rules{4}, 1, 2, 3, 4).id == -1);
      logits[29] = 1;
      CHECK(sample_row(30, logits.data(), room.data(), s, token_rules{0}, 1, 2, 3, 4).id == -1);
    }
}

TEST_CASE("a draw depends on seed, draw, sample and position, and on nothing else") {
  size_t const vocab = 1000;
  std::vector<float> const logits(vocab, 0.0f);
  std::vector<float> room(vocab);
  auto const id = [&](u64 seed, u32 draw, u32 sample, u32 position) {
    return sample_row(vocab, logits.data(), room.data(), sampling{}, token_rules{}, seed, draw, sample, position).id;
  };
  size_t same = 0, repeated = 0;
  for (u32 i = 0; i < 200; ++i) {
    repeated += id(1, i, 3, 4) == id(1, i, 3, 4);
    same += id(1, i, 3, 4) == id(2, i, 3, 4);
    same += id(1, i, 3, 4) == id(1, i + 1000, 3, 4);
    same += id(1, i, 3, 4) == id(1, i, 4, 4);
    same += id(1, i, 3, 4) == id(1, i, 3, 5);
  }
  CHECK(repeated == 200);
  CHECK(same < 10);
}

TEST_CASE("the noise of an id is the word of its philox counter") {
  float u[detail::noise_ids];
  for (size_t block : {0, 3}) {
    detail::uniform_noise(block, {{0, 7, 8, 9}}, 0x123456789abcdef0, u);
    for (u32 i = 0; i < detail::noise_ids; ++i) {
      u32 const id = static_cast<u32>(block * detail::noise_ids) + i;
      CHECK(u[i] == uniform(philox({{id / 4, 7, 8, 9}}, 0x123456789abcdef0).word[id % 4]));
    }
  }
}
