// A recipe bound over a small model and a batch of prompts, with everything that it reads filled in.
#pragma once
#include <doctest/doctest.h>
#include <algorithm>
#include <vector>
#include <weft/engine/cpu_instances.hpp>
#include <weft/model/initialise.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/recipes/grpo.hpp>
#include <weft/recipes/hybrid.hpp>
#include <weft/recipes/ppo.hpp>
#include <weft/recipes/sft.hpp>

namespace lab {
using namespace weft;
struct data : axis {};
struct rollout_pool : pool<split<data, rl::prompt<rl::training>>> {};
struct trainer_pool : pool<split<data, rl::prompt<rl::training>, rl::lane>> {};

struct batch_shape {
  size_t devices = 1, prompts = 5, group = 3, prompt_room = 8, room = 8, updates = 2;
  i32 slots = 4, batched_tokens = 16, pages = 0, budget = 24, together = 1;  // pages 0: as many as can be in use
  model::config model = [] {
    model::config c;
    c.layers = 2, c.hidden = 32, c.intermediate = 64, c.heads = 4, c.kv_heads = 2, c.head_dim = 8, c.vocab = 257, c.max_positions = 64,
    c.tied = true;
    return c;
  }();
  size_t samples() const { return prompts * group; }
  size_t context() const { return prompt_room + room; }
};
struct scorer {  // the share of ids of one class; no score for row 1
  static rl::reward_result score(void*, i32 row, i32 const* ids, i32 count) {
    f32 n = 0;
    for (i32 i = 0; i < count; ++i) n += f32(ids[i] % 3 == row % 3);
    return {n / f32(count), row == 1 ? rl::reward_result::error : rl::reward_result::scored};
  }
};
inline constexpr i32 stop_id = 256;

template <class Graph, class E> auto bound_to(E const& on, batch_shape const& s) {
  rl::config<rl::actor> const c{s.model};
  rl::config<rl::critic> cc{s.model};
  cc.labels = 1;
  rl::generation<rl::training> g;
  g.slots = s.slots, g.batched_tokens = s.batched_tokens, g.context = i32(s.context()), g.pages = s.pages;
  if (g.pages == 0) g.pages = rollout::most_pages(g);
  rl::decoding<rl::training> how;
  how.seed = 5, how.stop.ids = &stop_id, how.stop.id_count = 1;
  return bind<Graph>(
      on, data{{s.devices}}, rl::lane{{s.devices}}, rl::prompt<rl::training>{{s.prompts}}, rl::group<rl::training>{{s.group}},
      rl::prompt_position<rl::training>{{s.prompt_room}}, rl::position<rl::training>{{s.room}}, rl::rope_position{{s.context()}},
      rl::epoch<rl::actor>{{1}}, rl::epoch<rl::critic>{{1}}, rl::minibatch<rl::actor>{{s.updates}}, rl::minibatch<rl::critic>{{s.updates}},
      c, cc, rl::config<rl::reference>{s.model}, g, how, rl::reward_source<rl::training>{nullptr, &scorer::score}, rl::group_baseline{},
      objective::gae_settings{0.99, 0.95}, rl::kl_in_reward{}, rl::token_budget<rl::actor>{s.budget, 0, 0, s.together},
      rl::token_budget<rl::critic>{s.budget, 0, 0}, rl::token_budget<rl::scoring>{s.budget, 0, 1}, rl::optimizer<rl::actor>{},
      rl::optimizer<rl::critic>{}, rl::policy_objective{}, rl::policy_losses{}, rl::selecting_losses{}, rl::sft_objective{},
      rl::dpo_objective{}, rl::reward_objective{}, rl::hybrid_settings{}, rl::demonstrations_objective{}, rl::pairs_objective{},
      rl::value_objective{});
}
template <class Graph, class P> inline constexpr bool has = weft::detail::has_port<P, Graph>();

// The same on every device: models (the reference starts as the actor), optimizers, prompts; of a supervised recipe also responses.
template <class Graph, class Bound> void fill(Bound& graph, batch_shape const& s) {
  for (size_t d = 0; d < s.devices; ++d) {
    auto const view = [&]<class P>(P*) { return graph.template view_of<P>(d); };
    auto const load = [&]<class M>(M*, model::config c, u64 seed) {
      if constexpr (has<Graph, rl::weights<M>>) {
        model::initialise(c, seed, view((rl::weights<M>*)nullptr).data);
        model::fill_rope_table<f32>(c, s.context(), view((rl::rope_table<M>*)nullptr).data);
      }
      if constexpr (has<Graph, rl::moments<M>>) {
        auto const m = view((rl::moments<M>*)nullptr);
        std::fill_n(m.data, m.count(), std::uint8_t{});
        view((rl::updates_done<M>*)nullptr)() = 0;
        view((rl::passes<M>*)nullptr)() = 1;
        view((rl::learning_rate<M>*)nullptr)() = 1e-3f;
        view((rl::epoch_seed<M>*)nullptr)(0) = 9;
      }
    };
    auto critic = s.model;
    critic.labels = 1;
    load((rl::actor*)nullptr, s.model, 3), load((rl::reference*)nullptr, s.model, 3), load((rl::critic*)nullptr, critic, 4);
    if constexpr (has<Graph, rl::kl_coefficient>) view((rl::kl_coefficient*)nullptr)() = 0.1f;
    for (size_t p = 0; p < s.prompts; ++p) {
      for (size_t k = 0; k < s.prompt_room; ++k)
        view((rl::prompts<rl::training>*)nullptr)(p, k) = i32((40 + 7 * p + k) % size_t(s.model.vocab));
      view((rl::prompt_lengths<rl::training>*)nullptr)(p) = i32(1 + (1 + p) % s.prompt_room);
      if constexpr (has<Graph, rl::rows<rl::training>>) {
        view((rl::rows<rl::training>*)nullptr)(p) = i32(p);
        view((rl::draws<rl::training>*)nullptr)(p) = u32(p);
        view((rl::sampling_of<rl::training>*)nullptr)(p) = {.temperature = 0.9f};
      }
    }
    if constexpr (!has<Graph, rl::rows<rl::training>>)
      for (size_t i = 0; i < s.samples(); ++i) {
        for (size_t k = 0; k < s.room; ++k)
          view((rl::tokens<rl::training>*)nullptr).flat(i * s.room + k) = i32((90 + 5 * i + k) % size_t(s.model.vocab));
        view((rl::lengths<rl::training>*)nullptr).flat(i) = i32(1 + i % s.room);
        view((rl::included*)nullptr).flat(i) = i % 5 != 2;
      }
  }
}
}  // namespace lab
