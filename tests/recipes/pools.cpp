// The same recipe on one device and cut over several: the same samples bit for bit, the same losses, and weights up to the order of sums.
#include <train/lab.hpp>
using namespace lab;

namespace {
struct data : axis {};
struct rollout_pool : pool<split<data, rl::prompt<rl::training>>> {};
struct trainer_pool : pool<split<data, rl::prompt<rl::training>, rl::lane>> {};
inline constexpr size_t prompt_count = 5, samples = 3, updates = 2;

template <class M> rl::config<M> config_of(i32 labels = 0) {
  rl::config<M> c{tiny_config()};
  c.labels = labels;
  return c;
}
struct scorer {
  static rl::reward_result score(void*, i32 row, i32 const* ids, i32 count) {
    f32 n = 0;
    for (i32 i = 0; i < count; ++i) n += f32(ids[i] % 3 == row % 3);
    return {n / f32(count), row == 1 ? rl::reward_result::error : rl::reward_result::scored};
  }
};
struct outcome {
  std::vector<i32> tokens;
  std::vector<f32> log_probs, advantages, weights, norms;
};
template <class Graph, bool Critic> outcome play(size_t devices, bool poison = false) {
  auto const c = config_of<rl::actor>();
  auto const cc = config_of<rl::critic>(1);
  rl::generation<rl::training> g;
  g.slots = 4, g.batched_tokens = 16, g.context = 16, g.pages = rollout::most_pages(g);
  rl::decoding<rl::training> how;
  how.seed = 5;
  i32 const stop = 256;
  how.stop.ids = &stop, how.stop.id_count = 1;
  auto graph = bind<Graph>(
      cpu{}, data{{devices}}, rl::lane{{devices}}, rl::prompt<rl::training>{{prompt_count}}, rl::group<rl::training>{{samples}},
      rl::prompt_position<rl::training>{{8}}, rl::position<rl::training>{{8}}, rl::rope_position{{16}}, rl::epoch<rl::actor>{{1}}, rl::epoch<rl::critic>{{1}},
      rl::minibatch<rl::actor>{{updates}}, rl::minibatch<rl::critic>{{updates}}, c, cc, config_of<rl::reference>(), g, how,
      rl::reward_source<rl::training>{nullptr, &scorer::score}, rl::group_baseline{}, objective::gae_settings{0.99, 0.95}, rl::kl_in_reward{},
      rl::token_budget<rl::actor>{24, 0, 0}, rl::token_budget<rl::critic>{24, 0, 0}, rl::token_budget<rl::scoring>{24, 0, 1}, rl::optimizer<rl::actor>{},
      rl::optimizer<rl::critic>{}, rl::policy_objective{}, rl::value_objective{});
  std::vector<f32> w(model::parameter_count(c)), wc(model::parameter_count(cc));
  model::initialise(c, 3, w.data());
  model::initialise(cc, 4, wc.data());
  for (size_t d = 0; d < devices; ++d) {
    auto const load = [&]<class M>(M*, auto const& config, std::vector<f32> const& from) {
      std::copy(from.begin(), from.end(), graph.template view_of<rl::weights<M>>(d).data);
      model::fill_rope_table<f32>(config, 16, graph.template view_of<rl::rope_table<M>>(d).data);
      if constexpr (!std::is_same_v<M, rl::reference>) {
        auto const m = graph.template view_of<rl::moments<M>>(d);
        std::fill_n(m.data, m.count(), 0.0f);
        graph.template view_of<rl::updates_done<M>>(d)() = 0;
        graph.template view_of<rl::passes<M>>(d)() = 1;
        graph.template view_of<rl::learning_rate<M>>(d)() = 1e-3f;
        graph.template view_of<rl::epoch_seed<M>>(d)(0) = 9;
      }
    };
    load((rl::actor*)nullptr, c, w);
    if constexpr (Critic) {
      load((rl::critic*)nullptr, cc, wc);
      load((rl::reference*)nullptr, c, w);
      graph.template view_of<rl::kl_coefficient>(d)() = 0.1f;
    }
    for (size_t p = 0; p < prompt_count; ++p) {
      for (size_t k = 0; k < 8; ++k) graph.template view_of<rl::prompts<rl::training>>(d)(p, k) = i32(40 + 7 * p + k);
      graph.template view_of<rl::prompt_lengths<rl::training>>(d)(p) = i32(2 + p);
      graph.template view_of<rl::rows<rl::training>>(d)(p) = i32(p);
      graph.template view_of<rl::draws<rl::training>>(d)(p) = u32(p);
      graph.template view_of<rl::sampling_of<rl::training>>(d)(p) = {.temperature = 0.9f};
    }
  }
  graph.executor().poison = poison;
  outcome o;
  for (int step = 0; step < 2; ++step) {
    graph.step();
    auto const keep = [&](auto& to, auto const& v) { to.insert(to.end(), v.data, v.data + v.count()); };
    keep(o.tokens, graph.template view_of<rl::tokens<rl::training>>());
    keep(o.log_probs, graph.template view_of<rl::log_probs<rl::training>>());
    keep(o.advantages, graph.template view_of<rl::advantages>());
    keep(o.norms, graph.template view_of<rl::gradient_norms<rl::actor>>());
    for (size_t d = 1; d < devices; ++d)                      // every device took the same step
      CHECK(std::equal(graph.template view_of<rl::weights<rl::actor>>(0).data, graph.template view_of<rl::weights<rl::actor>>(0).data + w.size(),
                       graph.template view_of<rl::weights<rl::actor>>(d).data));
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
  auto const one = play<cut, false>(1);
  CHECK(one.weights == play<rl::grpo<>, false>(1).weights);
  for (size_t devices : {2, 3, 5}) {
    CAPTURE(devices);
    auto const many = play<cut, false>(devices);
    size_t const first = one.tokens.size() / 2;               // the second step samples from weights that differ in their last bits
    CHECK(std::equal(one.tokens.begin(), one.tokens.begin() + long(first), many.tokens.begin()));
    CHECK(std::equal(one.log_probs.begin(), one.log_probs.begin() + long(first), many.log_probs.begin()));
    CHECK(std::equal(one.advantages.begin(), one.advantages.begin() + long(first), many.advantages.begin()));
    near(one.norms, many.norms, 1e-5);
    near(one.weights, many.weights, 1e-4);
  }
}
TEST_CASE("PPO with a reference over 1, 2 and 4 devices") {
  using cut = rl::ppo_with_reference<rl::policy_objective, rollout_pool, trainer_pool>;
  auto const one = play<cut, true>(1);
  for (size_t devices : {2, 4}) {
    CAPTURE(devices);
    auto const many = play<cut, true>(devices);
    size_t const first = one.advantages.size() / 2;
    CHECK(std::equal(one.advantages.begin(), one.advantages.begin() + long(first), many.advantages.begin()));
    near(one.norms, many.norms, 1e-5);
    near(one.weights, many.weights, 1e-4);
  }
}
TEST_CASE("poisoned buffers change no bit") {
  using graph = rl::ppo_with_reference<>;
  CHECK(play<graph, true>(1).weights == play<graph, true>(1, true).weights);
}
