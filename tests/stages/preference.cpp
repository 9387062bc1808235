// Pairs: both answers stand in one micro-batch, any budget gives the same gradient, and the gradient is the derivative of the loss.
#include <weft/recipes/dpo.hpp>
#include "accumulate.hpp"
using namespace lab;

namespace {
constexpr size_t pair_count = 17, all = 2 * pair_count;
template <class Update, class... Fed> using pair_graph =
    graph<fed_pairs, feed<Fed>..., written_order<actor>, pack<actor>, count_tokens<actor>, zero<gradients<actor>, loss_sums<actor>>,
          each<upto<microbatch, bin_count<actor>>, Update>, keep<gradients<actor>>, keep<loss_sums<actor>>, keep<bins<actor>>,
          keep<bin_order<actor>>, keep<bin_count<actor>>>;

struct outcome_of_pairs {
  std::vector<f32> gradients;
  std::vector<double> sums;
  i32 bins;
};
template <class Objective, class Update, class... Fed> struct bench {
  using graph_type = pair_graph<Update, Fed...>;
  model::config c;
  std::vector<f32> weights;
  bound<cpu, graph_type> g;

  bench(Objective const& o, i32 labels)
      : c{small_config(labels, false)}
      , weights{::test::random_weights<f32>(c, 2)}
      , g{bind<graph_type>(cpu{}, prompt<training>{{pair_count}}, group<training>{{2}}, prompt_position<training>{{prompt_room}},
                           position<training>{{response_room}}, rope_position{{32}}, lane{{1}}, config<actor>{c},
                           token_budget<actor>{no_limit, 0, 0, 2}, o)} {
    model::fill_rope_table<f32>(c, 32, g.template view_of<rope_table<actor>>().data);
    g.executor().poison = true;
  }
  outcome_of_pairs run(i32 budget) {
    std::mt19937_64 random(5);
    std::copy(weights.begin(), weights.end(), g.template view_of<rl::weights<actor>>().data);
    auto const p = ::test::random_ids(random, pair_count * prompt_room, c.vocab),
               t = ::test::random_ids(random, all * response_room, c.vocab);
    std::copy(p.begin(), p.end(), g.template view_of<prompts<training>>().data);
    std::copy(t.begin(), t.end(), g.template view_of<tokens<training>>().data);
    for (size_t k = 0; k < pair_count; ++k) g.template view_of<prompt_lengths<training>>()(k) = 1 + i32(random() % prompt_room);
    for (size_t s = 0; s < all; ++s) {
      g.template view_of<lengths<training>>().flat(s) = 1 + i32(random() % response_room);
      g.template view_of<included>().flat(s) = 1;
    }
    [[maybe_unused]] auto const put = [&]<class P>(P*) {
      for (f32& x : g.template view_of<P>()) x = -3 + 0.5f * f32(random() % 7);
    };
    (put((Fed*)nullptr), ...);
    g.template setting<token_budget<actor>>().tokens = budget;
    g.step();
    auto const gradient = g.template view_of<gradients<actor>>();
    auto const sums = g.template view_of<loss_sums<actor>>();
    auto const bin = g.template view_of<bins<actor>>();
    i32 const bins = g.template view_of<bin_count<actor>>()();
    for (i32 i = 0; i < bins; ++i) {
      CHECK(bin.flat(size_t(i)).begin % 2 == 0);
      CHECK(bin.flat(size_t(i)).end % 2 == 0);
    }
    return {{gradient.begin(), gradient.end()}, {sums.begin(), sums.end()}, bins};
  }
  void check() {
    auto const whole = run(no_limit);
    REQUIRE(norm(whole.gradients) > 0);
    CHECK(whole.bins == 1);
    CHECK(whole.sums[sum_sequences] == all);
    for (i32 budget : {1, 30, 70}) {
      CAPTURE(budget);
      auto const cut = run(budget);
      CHECK(cut.bins > 3);
      CHECK(distance(cut.gradients, whole.gradients) <= 1e-5 * norm(whole.gradients));
      for (size_t i = 0; i < cut.sums.size(); ++i) CHECK(cut.sums[i] == doctest::Approx(whole.sums[i]).epsilon(1e-6));
    }
    double const size = norm(whole.gradients), step = 2e-2 / size;  // along the gradient the loss changes by its squared norm
    auto const at = [&](double side) {
      auto const keep = weights;
      for (size_t i = 0; i < weights.size(); ++i) weights[i] += f32(side * step * double(whole.gradients[i]) / size);
      double const value = run(no_limit).sums[0];
      weights = keep;
      return value;
    };
    CHECK((at(1) - at(-1)) / (2 * step) == doctest::Approx(size).epsilon(0.02));
  }
};
}  // namespace

TEST_CASE("DPO, every loss: any cut gives one gradient, and it is the derivative") {
  for (auto kind : {objective::dpo_loss::sigmoid, objective::dpo_loss::ipo, objective::dpo_loss::robust, objective::dpo_loss::hinge}) {
    CAPTURE(int(kind));
    dpo_objective o;
    auto& term = o.of<objective::dpo>();
    term.loss = kind, term.label_smoothing = kind == objective::dpo_loss::robust ? 0.2 : 0;
    bench<dpo_objective, preference_update<actor, dpo_objective>, ref_log_probs>{o, 0}.check();
  }
}
TEST_CASE("so does a reward model") { bench<reward_objective, score_update<actor, reward_objective>>{{}, 1}.check(); }
