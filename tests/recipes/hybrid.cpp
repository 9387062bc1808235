// Three tasks in one step: each with its own denominator, the same share in every mini-batch, and no word of micro-batches.
#include <weft/recipes/hybrid.hpp>
#include "recipe.hpp"
using namespace lab;

namespace {
struct outcome {
  std::vector<double> rollouts, sft, dpo;
  std::vector<f32> norms, weights;
};
bool known(void*, rollout::sample_view<f32> const& s) {  // prompts 0 and 1 are answered, 2 and 3 demonstrations, 4 and 5 pairs
  if (s.prompt < 2) return false;
  *s.length = s.index == 0 ? 3 : s.index == 1 && s.prompt >= 4 ? 5 : 0;
  for (i32 t = 0; t < *s.length; ++t) s.ids[t] = 60 + 7 * s.prompt + 3 * s.index + t;
  *s.reason = *s.length ? rollout::finish::length : rollout::finish::aborted;
  return true;
}
outcome play(i32 budget, double ppo, double sft, double dpo, i32 updates = 2) {
  batch_shape shape;
  shape.prompts = 6, shape.group = 3, shape.budget = budget, shape.together = 3, shape.updates = size_t(updates);
  auto graph = bound_to<rl::hybrid<>>(cpu{}, shape);
  fill<rl::hybrid<>>(graph, shape);
  graph.executor().poison = true;
  graph.setting<rl::decoding<rl::training>>().watch.known = &known;
  graph.setting<rl::hybrid_settings>() = {{ppo, sft, dpo}, updates};
  for (size_t p = 0; p < 6; ++p) {
    graph.view_of<rl::task>()(p) = i32(p / 2);
    if (p >= 2) graph.view_of<rl::rows<rl::training>>()(p) = -1, graph.view_of<rl::sampling_of<rl::training>>()(p) = {};
    else graph.view_of<rl::rows<rl::training>>()(p) = 2;  // with a score
  }
  graph.step();
  auto const all = [&]<class P>(P*) {
    auto const v = graph.template view_of<P>();
    return std::vector(v.begin(), v.end());
  };
  auto const w = graph.view_of<rl::weights<rl::actor>>();
  return {all((rl::loss_sums<rl::actor>*)nullptr),
          all((rl::task_sums<1>*)nullptr),
          all((rl::task_sums<2>*)nullptr),
          all((rl::gradient_norms<rl::actor>*)nullptr),
          {w.begin(), w.end()}};
}
void same(std::vector<double> const& a, std::vector<double> const& b) {
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5).scale(1e-3));
}
}  // namespace

TEST_CASE("hybrid: tasks are counted apart, and cut into the same number of mini-batches") {
  auto const whole = play(4000, 0.4, 0.4, 0.2);
  CHECK(whole.sft[rl::sum_tokens] == 2 * 3);
  CHECK(whole.sft[rl::sum_sequences] == 2);
  CHECK(whole.dpo[rl::sum_tokens] == 2 * 8);
  CHECK(whole.dpo[rl::sum_sequences] == 4);
  CHECK(whole.rollouts[rl::sum_sequences] == 6);
  REQUIRE(whole.norms.size() == 2);
  for (f32 n : whole.norms) CHECK(n > 0);
  for (i32 budget : {10, 40, 90}) {
    CAPTURE(budget);
    auto const cut = play(budget, 0.4, 0.4, 0.2);
    same(cut.rollouts, whole.rollouts), same(cut.sft, whole.sft), same(cut.dpo, whole.dpo);
    for (size_t i = 0; i < 2; ++i) CHECK(cut.norms[i] == doctest::Approx(whole.norms[i]).epsilon(1e-5));
  }
}
TEST_CASE("hybrid: the gradient is the weighted sum of those of the tasks") {
  // one mini-batch, so that all start from the same weights; a weight scales the gradient of its task
  auto const norm = [](double a, double b, double c) { return double(play(4000, a, b, c, 1).norms[0]); };
  for (int t = 0; t < 3; ++t) {
    CAPTURE(t);
    double const one = norm(t == 0, t == 1, t == 2), half = norm(t == 0 ? 0.5 : 0, t == 1 ? 0.5 : 0, t == 2 ? 0.5 : 0);
    CHECK(one > 0);
    CHECK(half == doctest::Approx(one / 2).epsilon(1e-5));
  }
  // |a + b|^2 + |a - b|^2 = 2 |a|^2 + 2 |b|^2
  double const a = norm(0, 1, 0), b = norm(0, 0, 1), both = norm(0, 1, 1), apart = norm(0, 1, -1);
  CHECK(both * both + apart * apart == doctest::Approx(2 * a * a + 2 * b * b).epsilon(1e-4));
}
