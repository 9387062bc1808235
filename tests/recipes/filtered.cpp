// Filters change what is drawn, not what is recorded: the log-prob of the full distribution, which is also the one that training computes.
#include "recipe.hpp"
using namespace lab;

namespace {
size_t metric(char const* name) {
  auto const names = rl::policy_objective::metric_names();
  for (size_t i = 0; i < names.size(); ++i)
    if (std::string(names[i].name) == name) return i;
  FAIL(name);
  return 0;
}
}  // namespace
TEST_CASE("with top-p, top-k or min-p the recorded log-prob is the full one, and the first ratio is exactly 1") {
  batch_shape shape;
  shape.updates = 1;
  auto graph = bound_to<rl::grpo<>>(cpu{}, shape);
  for (kernels::sampling how : {kernels::sampling{.temperature = 0.8f, .top_p = 0.6f},
                                {.temperature = 1.3f, .top_k = 5},
                                {.temperature = 1, .min_p = 0.5f},
                                {.temperature = 0.9f, .top_k = 40, .top_p = 0.7f, .min_p = 0.1f},
                                {.temperature = 0},
                                {}}) {
    CAPTURE(how.top_p);
    CAPTURE(how.top_k);
    CAPTURE(how.min_p);
    fill<rl::grpo<>>(graph, shape);
    for (f32& w : graph.view_of<rl::weights<rl::actor>>())
      if (w != 1) w *= 4;  // far from uniform
    for (auto& s : graph.view_of<rl::sampling_of<rl::training>>()) s = how;
    graph.step();
    auto const sums = graph.view_of<rl::loss_sums<rl::actor>>();
    CHECK(sums(rl::sum_tokens) > 0);
    for (char const* name : {"actor/ppo_kl", "actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/kl_loss"})
      CHECK(sums(metric(name)) == 0);
    auto const n = graph.view_of<rl::lengths<rl::training>>();
    auto const lp = graph.view_of<rl::log_probs<rl::training>>();
    auto const kept = graph.view_of<rl::log_kept<rl::training>>();
    size_t narrowed = 0;
    bool const filtered = how.top_p < 1 || how.top_k > 0 || how.min_p > 0;
    for (size_t s = 0; s < n.count(); ++s)
      for (size_t t = 0; t < size_t(n.flat(s)); ++t) {
        f32 const mass = kept.flat(s * shape.room + t), of_id = lp.flat(s * shape.room + t);
        CHECK(of_id <= mass + 1e-6f);  // an id that was drawn is among what was kept
        narrowed += mass < 0;
      }
    CHECK((narrowed > 0) == filtered);
  }
}
