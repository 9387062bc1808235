// Tokens are selected over the whole mini-batch: micro-batches change neither which ones nor the gradient.
#include <weft/recipes/clip_cov.hpp>
#include "recipe.hpp"
using namespace lab;

namespace {
struct outcome {
  std::vector<double> sums;
  std::vector<f32> norms;
};
outcome play(i32 budget, i32 mode) {
  batch_shape shape;
  shape.budget = budget;
  auto graph = bound_to<rl::clip_cov<>>(cpu{}, shape);
  fill<rl::clip_cov<>>(graph, shape);
  graph.executor().poison = true;
  auto& loss = graph.setting<rl::selecting_losses>();
  loss.chosen = mode;
  loss.each([]<class Sum>(Sum& one) {
    if constexpr (std::is_base_of_v<objective::clip_cov, Sum>) {
      auto& term = one.template of<objective::clip_cov>();
      term.ratio = 0.1, term.covariance_low = 0, term.covariance_high = 100;
    } else {
      auto& term = one.template of<objective::kl_cov>();
      term.ratio = 0.1, term.ppo_kl_coef = 0.5;
    }
  });
  graph.step();
  auto const s = graph.view_of<rl::loss_sums<rl::actor>>();
  auto const n = graph.view_of<rl::gradient_norms<rl::actor>>();
  return {{s.begin(), s.end()}, {n.begin(), n.end()}};
}
}  // namespace
TEST_CASE("clip_cov and kl_cov: any cut into micro-batches selects the same tokens and gives the same gradient") {
  for (i32 mode : {0, 1}) {
    CAPTURE(mode);
    auto const whole = play(4000, mode);
    if (mode == 0) {  // actor/pg_clipfrac: the share that is selected, a tenth of each mini-batch
      CHECK(whole.sums[2] > 0.05 * whole.sums[rl::sum_tokens]);
      CHECK(whole.sums[2] <= 0.1 * whole.sums[rl::sum_tokens]);
    }
    for (i32 budget : {17, 24, 60}) {
      CAPTURE(budget);
      auto const cut = play(budget, mode);
      CHECK(cut.sums[2] == doctest::Approx(whole.sums[2]).epsilon(1e-5));
      REQUIRE(cut.norms.size() == whole.norms.size());
      for (size_t i = 0; i < cut.norms.size(); ++i) CHECK(cut.norms[i] == doctest::Approx(whole.norms[i]).epsilon(1e-5));
    }
  }
}
