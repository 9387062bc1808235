// bottleneck.hpp — what a step waited for most, and the knob that moves it. Shares are of the step's wall time and add up to 1:
//   straggler   generation with slots that no sequence was left for: the step waits for its longest answers
//   memory      tokens decoded again after a preemption, and activations computed again in the backward pass
//   reward      the reward function, on the host
//   data        outside the graph: rows, journal, metrics
//   link        moves between devices
//   generation, update   the rest of both: computing
// One of the first five is named if it takes a tenth of the step or more, else the larger of the last two.
#pragma once
#include <algorithm>
#include <cstddef>

namespace weft::train {
struct step_times {                                                               // seconds
  double step = 0, graph = 0, generation = 0, reward = 0, moves = 0, device = 0;  // device: in stages that are not the host's
  double busy_slots = 1;                                                          // share of the slots that were busy, on average
  double replayed = 0;      // share of the generated tokens that were generated before
  bool recomputes = false;  // activations are computed again: a quarter of an update
};
struct waiting {
  char const *name, *knob;
  double share;
};
inline constexpr std::size_t kinds_of_waiting = 7;
struct bottleneck {
  waiting all[kinds_of_waiting];
  waiting const& named() const {
    auto const less = [](waiting const& a, waiting const& b) { return a.share < b.share; };
    waiting const* const worst = std::max_element(all, all + 5, less);
    return worst->share >= 0.1 ? *worst : *std::max_element(all + 5, all + kinds_of_waiting, less);
  }
};
inline bottleneck bottleneck_of(step_times const& t) {
  double const whole = t.step > 0 ? t.step : 1;
  double const update = std::max(0.0, t.graph - t.generation - t.reward - t.moves);
  double const idle = t.generation * (1 - std::clamp(t.busy_slots, 0.0, 1.0)), again = (t.generation - idle) * t.replayed;
  double const recomputed = t.recomputes ? update / 4 : 0;
  return {{{"straggler", "rollout.max_num_seqs", idle / whole},
           {"reward", "the reward function", t.reward / whole},
           {"data", "data.train_batch_size", std::max(0.0, t.step - t.graph) / whole},
           {"link", "placement of the pools", t.moves / whole},
           {"memory", again > recomputed ? "rollout.kv_pages" : "actor_rollout_ref.model.enable_gradient_checkpointing",
            (again + recomputed) / whole},
           {"generation", "rollout.max_num_seqs", (t.generation - idle - again) / whole},
           {"update", "actor.ppo_max_token_len_per_gpu", (update - recomputed) / whole}}};
}
}  // namespace weft::train
