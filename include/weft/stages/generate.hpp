// stages/generate.hpp — n samples for each prompt, with the log-prob that each token had when it was drawn. The KV pool is scratch: its bytes are
// activations and logits for the rest of the step.
#pragma once
#include <weft/kernels/rows.hpp>
#include <weft/rollout/generate.hpp>
#include "ports.hpp"

namespace weft::rl {
template <class M, class Use, class Kv = real> struct generate {
  static constexpr bool driven = true;  // on a GPU it launches its own graphs
  template <class E> static void run(E& on, in<prompts<Use>> p, in<prompt_lengths<Use>> np, in<draws<Use>> draw, in<sampling_of<Use>> how,
                                     setting<config<M>> c, setting<generation<Use>> g, setting<decoding<Use>> d, state<rope_table<M>> rope,
                                     state<weights<M>> w, scratch<rollout_index<M, Use>> ints, scratch<rollout_rows<M, Use>> reals,
                                     scratch<draw_logits<M, Use>> logits, scratch<kv_pool<M, Use, Kv>> pool, out<tokens<Use>> t,
                                     out<lengths<Use>> n, out<finishes<Use>> finish, out<log_probs<Use>> lp, out<log_kept<Use>> kept,
                                     out<entropies<Use>> h, out<rollout_sums<Use>> sums) {
    using T = typename E::compute;
    using cached = std::conditional_t<std::is_same_v<Kv, real>, T, Kv>;
    rollout::request<f32> ask;
    ask.prompts = i32(np.count());
    ask.group = i32(t.template extent<group<Use>>());
    ask.prompt_capacity = i32(p.template extent<prompt_position<Use>>());
    ask.prompt_ids = p.data;
    ask.prompt_lengths = np.data;
    ask.draws = draw.data;
    ask.seed = d->seed;
    ask.sampling = how.data;
    ask.sampling_count = ask.prompts;
    ask.sampled_ids = d->sampled_ids;
    ask.bias_ids = d->bias_ids;
    ask.bias = d->bias;
    ask.bias_count = d->bias_count;
    ask.stop = d->stop;
    ask.watch = d->watch;
    rollout::outputs<f32> const to{t.data,
                                   lp.data,
                                   kept.data,
                                   h.data,
                                   n.data,
                                   reinterpret_cast<rollout::finish*>(finish.data),
                                   i32(t.template extent<position<Use>>())};
    auto const done = rollout::generate(on, rollout::policy<T>{&*c, rope.data, as<T>(w)}, ask, *g, to,
                                        rollout::workspace<T, cached>{ints.data, as<T>(reals), as<T>(logits), as<cached>(pool)});
    double const all[statistic::size] = {double(done.steps),       double(done.started),   double(done.finished), double(done.aborted),
                                         double(done.known),       double(done.prefilled), double(done.saved),    double(done.decoded),
                                         double(done.preemptions), double(done.replayed),  double(done.busy)};
    kernels::put(on, statistic::size, all, sums.data);
  }
};
}  // namespace weft::rl
