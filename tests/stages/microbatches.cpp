// A mini-batch is cut into micro-batches by a token budget: which budget must not matter.
#include "accumulate.hpp"
using namespace lab;

namespace {
using sequence_objective = objective::sum<objective::gspo, objective::entropy>;
using product_objective = objective::sum<objective::geo_mean, objective::kl>;

template <class Sum> Sum weighed() {  // every term counts
  Sum o;
  if constexpr (std::is_base_of_v<objective::entropy, Sum>) o.template of<objective::entropy>().weight = 0.02;
  if constexpr (std::is_base_of_v<objective::kl, Sum>) o.template of<objective::kl>().weight = 0.3;
  o.loss_scale_factor = 7;
  return o;
}
// Names of the tensors in which a and b differ by any bit.
std::string different(model::config const& c, std::vector<f32> const& a, std::vector<f32> const& b) {
  std::string names;
  model::for_each_tensor(c, [&](model::tensor const& t) {
    if (std::memcmp(a.data() + t.offset, b.data() + t.offset, t.size() * sizeof(f32))) names += model::full_name(t) + " ";
  });
  return names;
}
template <class Bench> void any_cut(Bench& at) {
  for (auto const& mode : objective::aggregation_names) {
    CAPTURE(std::string(mode.name));
    at.loss.loss_agg_mode = mode.mode;
    auto const whole = at.run(no_limit);
    REQUIRE(whole.bins == 1);
    REQUIRE(norm(whole.gradients) > 0);
    i32 bins = i32(all_samples);
    for (auto [tokens, samples] : {std::pair{1, 0}, {20, 0}, {33, 0}, {no_limit, 4}, {150, 0}, {401, 0}}) {
      CAPTURE(tokens);
      auto const cut = at.run(i32(tokens), i32(samples));
      CHECK(cut.bins > 1);
      CHECK(cut.bins <= bins);
      bins = cut.bins;
      CHECK(distance(cut.gradients, whole.gradients) <= 1e-6 * norm(whole.gradients));
      CHECK(cut.sums == whole.sums);                                                   // metrics are added in the order of tokens
      std::string const names = different(at.from.c, cut.gradients, whole.gradients);  // sums go on where the last micro-batch ended
      CHECK((names.empty() || (at.from.c.tied && names == "model.embed_tokens.weight ")));
    }
  }
}
template <class Bench> void last_one(Bench& at) {
  at.loss.loss_agg_mode = objective::aggregation::seq_mean_token_mean;
  size_t budget = 60, tokens = 0;
  auto const last_of = [&](outcome const& o) { return o.bin[size_t(o.bins) - 1]; };
  std::vector<size_t> order;
  for (size_t s = 0; s < all_samples; ++s)
    if (at.from.forward_tokens(s)) order.push_back(s);
  outcome all;
  do {  // a budget that leaves less than a third for the last
    all = at.run(i32(++budget));
    tokens = 0;
    for (i32 i = last_of(all).begin; i < last_of(all).end; ++i) tokens += at.from.forward_tokens(order[size_t(i)]);
  } while (3 * tokens > budget);
  auto const last = last_of(all);
  REQUIRE(last.end == i32(order.size()));
  auto const keep = at.from.included;
  for (i32 i = last.begin; i < last.end; ++i) at.from.included[order[size_t(i)]] = 0;
  auto const without = at.run(i32(budget));
  CHECK(without.bins == all.bins - 1);
  for (size_t s = 0; s < all_samples; ++s) at.from.included[s] = keep[s] && !at.from.included[s];
  auto const alone = at.run(i32(budget));
  CHECK(alone.bins == 1);
  at.from.included = keep;
  auto const share = [&](outcome const& o) { return f32(o.sums[sum_sequences] / all.sums[sum_sequences]); };
  std::vector<f32> rest = all.gradients;
  for (size_t i = 0; i < rest.size(); ++i) rest[i] -= share(without) * without.gradients[i];
  CHECK(distance(rest, [&] {
          auto scaled = alone.gradients;
          for (f32& x : scaled) x *= share(alone);
          return scaled;
        }()) <= 1e-6 * norm(all.gradients));
  CHECK(norm(rest) > 1e-3 * norm(all.gradients));
  CHECK(without.sums[sum_tokens] + alone.sums[sum_tokens] == all.sums[sum_tokens]);
}
template <class Bench> void powers_of_two(Bench& at) {
  at.loss.loss_agg_mode = objective::aggregation::token_mean;
  auto const plain = at.run(100);
  for (int k : {-14, -3, 1, 15, 24}) {
    CAPTURE(k);
    at.loss.scale = std::ldexp(1.0, k);
    auto const scaled = at.run(100);
    at.loss.scale = 1;
    size_t wrong = 0;
    for (size_t i = 0; i < plain.gradients.size(); ++i) wrong += scaled.gradients[i] != std::ldexp(plain.gradients[i], k);
    CHECK(wrong == 0);
    CHECK(scaled.sums == plain.sums);
  }
}
template <class Bench, class Objective> void check(Objective const& o, bool tied, i32 labels = 0) {
  CAPTURE(tied);
  Bench at{samples{small_config(labels, tied)}, o};
  any_cut(at);
  last_one(at);
  powers_of_two(at);
}
}  // namespace

TEST_CASE_TEMPLATE("any cut gives the same gradient; the last micro-batch counts; losses times 2^k give gradients times 2^k", Sum,
                   policy_objective, rl::policy_sum<objective::reinforce>, sequence_objective, product_objective) {
  for (bool tied : {false, true}) check<policy<Sum>>(weighed<Sum>(), tied);
}
TEST_CASE("so it is for supervised learning") {
  for (bool tied : {false, true}) check<supervised>(sft_objective{}, tied);
}
TEST_CASE("and for a critic") { check<critics>(value_objective{}, false, 1); }
