// Samples of random tokens, and a graph that adds up the gradients of one mini-batch over its micro-batches: nothing is sampled, nothing is
// stepped, so that what is compared is the update stage alone.
#pragma once
#include <doctest/doctest.h>
#include <model/support.hpp>
#include <weft/engine/cpu_instances.hpp>
#include <weft/recipes/parts.hpp>

namespace lab {
using namespace weft;
using namespace weft::rl;
inline constexpr size_t prompt_count = 24, group_size = 3, prompt_room = 9, response_room = 11, all_samples = prompt_count * group_size,
                        no_limit = 2000;

inline model::config small_config(i32 labels, bool tied) {
  model::config c = ::test::small(4, 2, 8);
  c.hidden = 32, c.vocab = 67, c.max_positions = 32, c.tied = tied, c.labels = labels;
  return c;
}

// Prompts and responses, some of them empty or left out; log-probs under the weights, and numbers around them.
struct samples {
  model::config c;
  std::vector<f32> weights;
  std::vector<i32> prompts, prompt_lengths, tokens, lengths, included;
  std::vector<f32> old, ref, advantages, values, returns;
  std::vector<kernels::sampling> sampling;

  explicit samples(model::config const& shape, unsigned seed = 1) : c{shape}, weights{::test::random_weights<f32>(shape, seed)} {
    std::mt19937_64 random(seed);
    std::normal_distribution<f32> normal;
    prompts = ::test::random_ids(random, prompt_count * prompt_room, c.vocab);
    tokens = ::test::random_ids(random, all_samples * response_room, c.vocab);
    for (size_t p = 0; p < prompt_count; ++p) {
      prompt_lengths.push_back(1 + i32(random() % prompt_room));
      sampling.push_back({.temperature = p % 4 ? 0.7f + 0.1f * f32(p % 5) : 1.0f});
    }
    for (size_t s = 0; s < all_samples; ++s) {
      lengths.push_back(s % 19 == 5 ? 0 : 1 + i32(random() % response_room));
      included.push_back(s % 11 != 3);
    }
    old = log_probs();
    ref = old;
    for (f32& x : old) x += 0.15f * normal(random);
    for (f32& x : ref) x += 0.3f * normal(random);
    for (auto* v : {&advantages, &values, &returns}) {
      v->resize(tokens.size());
      for (f32& x : *v) x = normal(random);
    }
  }
  std::vector<f32> log_probs() const {  // [sample, position]
    if (c.labels) return std::vector<f32>(tokens.size());
    ::test::decoder<f32> m{c, weights};
    std::vector<f32> all(tokens.size());
    for (size_t s = 0; s < all_samples; ++s) {
      size_t const p = s / group_size, n = size_t(prompt_lengths[p]), rows = size_t(lengths[s]);
      if (rows == 0) continue;
      std::vector<i32> ids(prompts.begin() + long(p * prompt_room), prompts.begin() + long(p * prompt_room + n));
      i32 const* const response = tokens.data() + s * response_room;
      ids.insert(ids.end(), response, response + rows - 1);
      ::test::packed batch;
      batch.push(ids);
      auto const h = m.forward(batch);
      std::vector<f32> inverse(rows, kernels::inverse_temperature_of<f32>(sampling[p])), logits(rows * size_t(c.vocab)), entropy(rows);
      kernels::head_log_probs(m.on, rows, size_t(c.hidden), size_t(c.vocab), h.data() + (n - 1) * size_t(c.hidden),
                              model::head_weight(c, weights.data()), response, inverse.data(), rows, logits.data(),
                              all.data() + s * response_room, entropy.data());
    }
    return all;
  }
  size_t forward_tokens(size_t s) const { return included[s] && lengths[s] ? size_t(prompt_lengths[s / group_size] + lengths[s] - 1) : 0; }
};

struct outcome {
  std::vector<f32> gradients;
  std::vector<double> sums;
  i32 bins;
  std::vector<range> bin;
};

template <class M, class Update, class Objective, class... Fed> class accumulator {
  using steps =
      graph<feed<prompts<training>>, feed<prompt_lengths<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<included>,
            feed<Fed>..., written_order<M>, pack<M>, count_tokens<M>, zero<gradients<M>, loss_sums<M>>,
            each<upto<microbatch, bin_count<M>>, Update>, keep<gradients<M>>, keep<loss_sums<M>>, keep<bins<M>>, keep<bin_count<M>>>;
  bound<cpu, steps> graph_;

 public:
  Objective& loss;
  samples from;

  accumulator(samples data, Objective const& o)
      : graph_{bind<steps>(cpu{}, prompt<training>{{prompt_count}}, group<training>{{group_size}}, prompt_position<training>{{prompt_room}},
                           position<training>{{response_room}}, rope_position{{32}}, lane{{1}}, config<M>{data.c},
                           token_budget<M>{no_limit, 0, 0}, o)}
      , loss{graph_.template setting<Objective>()}
      , from{std::move(data)} {
    std::copy(from.weights.begin(), from.weights.end(), graph_.template view_of<rl::weights<M>>().data);
    model::fill_rope_table<f32>(from.c, 32, graph_.template view_of<rope_table<M>>().data);
    graph_.executor().poison = true;
  }
  outcome run(i32 tokens_at_once, i32 samples_at_once = 0) {
    auto const put = [&]<class P>(P*, auto const& v) { std::copy(v.begin(), v.end(), graph_.template view_of<P>().data); };
    put((prompts<training>*)nullptr, from.prompts), put((prompt_lengths<training>*)nullptr, from.prompt_lengths);
    put((tokens<training>*)nullptr, from.tokens), put((lengths<training>*)nullptr, from.lengths), put((included*)nullptr, from.included);
    (put((Fed*)nullptr, of((Fed*)nullptr)), ...);
    auto& budget = graph_.template setting<token_budget<M>>();
    budget.tokens = tokens_at_once, budget.samples = samples_at_once;
    graph_.step();
    auto const g = graph_.template view_of<gradients<M>>();
    auto const s = graph_.template view_of<loss_sums<M>>();
    auto const b = graph_.template view_of<bins<M>>();
    return {{g.begin(), g.end()}, {s.begin(), s.end()}, graph_.template view_of<bin_count<M>>()(), {b.begin(), b.end()}};
  }

 private:
  auto const& of(sampling_of<training>*) const { return from.sampling; }
  auto const& of(log_probs<training>*) const { return from.old; }
  auto const& of(advantages*) const { return from.advantages; }
  auto const& of(ref_log_probs*) const { return from.ref; }
  auto const& of(values*) const { return from.values; }
  auto const& of(returns*) const { return from.returns; }
};
template <class Objective> using policy =
    accumulator<actor, policy_update<actor, Objective>, Objective, sampling_of<training>, log_probs<training>, advantages, ref_log_probs>;
using supervised = accumulator<actor, sft_update<actor, sft_objective>, sft_objective>;
using critics = accumulator<critic, value_update<critic, value_objective>, value_objective, values, returns>;

inline double norm(std::vector<f32> const& x) {
  double sum = 0;
  for (f32 v : x) sum += double(v) * double(v);
  return std::sqrt(sum);
}
inline double distance(std::vector<f32> const& a, std::vector<f32> const& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
  return std::sqrt(sum);
}
}  // namespace lab
