// The same recipe on one device and cut over several: the same samples bit for bit, the same losses, and weights up to the order of sums.
#include "recipe.hpp"
using namespace lab;

namespace {
struct outcome {
  std::vector<i32> tokens;
  std::vector<f32> log_probs, advantages, weights, norms;
};
template <class Graph> outcome play(size_t devices, bool poison = false) {
  batch_shape shape;
  shape.devices = devices;
  auto graph = bound_to<Graph>(cpu{}, shape);
  fill<Graph>(graph, shape);
  graph.executor().poison = poison;
  outcome o;
  for (int step = 0; step < 2; ++step) {
    graph.step();
    auto const keep = [&](auto& to, auto const& v) { to.insert(to.end(), v.data, v.data + v.count()); };
    keep(o.tokens, graph.template view_of<rl::tokens<rl::training>>());
    keep(o.log_probs, graph.template view_of<rl::log_probs<rl::training>>());
    keep(o.advantages, graph.template view_of<rl::advantages>());
    keep(o.norms, graph.template view_of<rl::gradient_norms<rl::actor>>());
    auto const first = graph.template view_of<rl::weights<rl::actor>>(0);
    for (size_t d = 1; d < devices; ++d)  // every device took the same step
      CHECK(std::equal(first.begin(), first.end(), graph.template view_of<rl::weights<rl::actor>>(d).data));
  }
  auto const v = graph.template view_of<rl::weights<rl::actor>>();
  o.weights.assign(v.data, v.data + v.count());
  return o;
}
void near(std::vector<f32> const& a, std::vector<f32> const& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += double(a[i] - b[i]) * double(a[i] - b[i]), size += double(a[i]) * double(a[i]);
  CHECK(std::sqrt(difference) <= tolerance * std::sqrt(size));
}
}  // namespace

TEST_CASE("GRPO over 1, 2, 3 and 5 devices") {
  using cut = rl::grpo<rl::policy_objective, rollout_pool, trainer_pool>;
  auto const one = play<cut>(1);
  CHECK(one.weights == play<rl::grpo<>>(1).weights);
  for (size_t devices : {2, 3, 5}) {
    CAPTURE(devices);
    auto const many = play<cut>(devices);
    size_t const first = one.tokens.size() / 2;  // the second step samples from weights that differ in their last bits
    CHECK(std::equal(one.tokens.begin(), one.tokens.begin() + long(first), many.tokens.begin()));
    CHECK(std::equal(one.log_probs.begin(), one.log_probs.begin() + long(first), many.log_probs.begin()));
    CHECK(std::equal(one.advantages.begin(), one.advantages.begin() + long(first), many.advantages.begin()));
    near(one.norms, many.norms, 1e-5);
    near(one.weights, many.weights, 1e-4);
  }
}
TEST_CASE("PPO with a reference over 1, 2 and 4 devices") {
  using cut = rl::ppo_with_reference<rl::policy_objective, rollout_pool, trainer_pool>;
  auto const one = play<cut>(1);
  for (size_t devices : {2, 4}) {
    CAPTURE(devices);
    auto const many = play<cut>(devices);
    size_t const first = one.advantages.size() / 2;
    CHECK(std::equal(one.advantages.begin(), one.advantages.begin() + long(first), many.advantages.begin()));
    near(one.norms, many.norms, 1e-5);
    near(one.weights, many.weights, 1e-4);
  }
}
TEST_CASE("poisoned buffers change no bit") {
  using graph = rl::ppo_with_reference<>;
  CHECK(play<graph>(1).weights == play<graph>(1, true).weights);
}
