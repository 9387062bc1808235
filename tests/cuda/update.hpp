// update.hpp — graphs that train on given samples: what update.cu binds on a GPU and update.cpp binds on the CPU.
#pragma once
#include <memory>
#include <weft/recipes/parts.hpp>
#include <weft/step.hpp>

namespace lab {
using namespace weft;
using namespace weft::rl;

template <class M, class Update, class... Fed> using training_graph =
    graph<feed<prompts<training>>, feed<prompt_lengths<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<included>,
          feed<Fed>..., fed_update<M>, update_epochs<M, Update, local>, keep<gradient_norms<M>>, keep<loss_sums<M>>>;
using gspo_objective = objective::sum<objective::gspo, objective::entropy, objective::kl>;
using policy_graph =
    training_graph<actor, policy_update<actor, policy_objective>, sampling_of<training>, log_probs<training>, advantages, ref_log_probs>;
using gspo_graph =
    training_graph<actor, policy_update<actor, gspo_objective>, sampling_of<training>, log_probs<training>, advantages, ref_log_probs>;
using sft_graph = training_graph<actor, sft_update<actor, sft_objective>>;
using critic_graph = training_graph<critic, value_update<critic, value_objective>, values, returns>;
using scoring_graph =
    graph<feed<prompts<training>>, feed<prompt_lengths<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<included>,
          feed<sampling_of<training>>, pack_all, scored_by<reference_log_probs<reference>, ref_log_probs, local>,
          scored_by<state_values<critic>, values, local>, keep<ref_log_probs>, keep<values>>;

// What was drawn, and what the training forward says of it under the same weights.
template <class Kv> using rollout_graph =
    graph<feed<prompts<training>>, feed<prompt_lengths<training>>, feed<draws<training>>, feed<sampling_of<training>>,
          generate<actor, training, Kv>, feed<included>, pack_all, scored_by<reference_log_probs<reference>, ref_log_probs, local>,
          keep<tokens<training>>, keep<lengths<training>>, keep<finishes<training>>, keep<log_probs<training>>, keep<log_kept<training>>,
          keep<entropies<training>>, keep<rollout_sums<training>>, keep<ref_log_probs>>;

struct shape {
  model::config actor, critic;
  size_t prompts = 8, group = 4, prompt_room = 40, room = 50;
  i32 tokens = 256, minibatches = 2, recompute = 0;
  rollout::settings rollout = {};
  rollout::stopping stop = {};
  i32 sampled_ids = 0;
  rollout::observer<f32> watch = {};
};
enum class kind { policy, gspo, sft, critic, scoring, rollout, rollout_f8 };
template <class E> std::unique_ptr<any_step> make(E const& on, kind what, shape const& s) {
  policy_objective policy;
  policy.of<objective::kl>().weight = 0.1, policy.of<objective::entropy>().weight = 0.01;
  gspo_objective sequence;
  sequence.of<objective::kl>().weight = 0.1;
  generation<training> g;
  static_cast<rollout::settings&>(g) = s.rollout;
  decoding<training> d;
  d.seed = 17, d.stop = s.stop, d.sampled_ids = s.sampled_ids, d.watch = s.watch;
  auto const bound = [&]<class G>(G*) {
    return make_step<G>(on, prompt<training>{{s.prompts}}, group<training>{{s.group}}, prompt_position<training>{{s.prompt_room}},
                        position<training>{{s.room}}, rope_position{{s.prompt_room + s.room}}, lane{{1}}, config<actor>{s.actor},
                        config<critic>{s.critic}, config<reference>{s.actor}, epoch<actor>{{1}}, epoch<critic>{{1}},
                        minibatch<actor>{{size_t(s.minibatches)}}, minibatch<critic>{{size_t(s.minibatches)}},
                        token_budget<actor>{s.tokens, 0, s.recompute}, token_budget<critic>{s.tokens, 0, s.recompute},
                        token_budget<scoring>{s.tokens, 0, 1}, optimizer<actor>{}, optimizer<critic>{}, policy, sequence, sft_objective{},
                        value_objective{}, g, d);
  };
  switch (what) {
    case kind::policy:
      return bound((policy_graph*)nullptr);
    case kind::gspo:
      return bound((gspo_graph*)nullptr);
    case kind::sft:
      return bound((sft_graph*)nullptr);
    case kind::critic:
      return bound((critic_graph*)nullptr);
    case kind::scoring:
      return bound((scoring_graph*)nullptr);
    case kind::rollout:
      return bound((rollout_graph<real>*)nullptr);
    case kind::rollout_f8:
      return bound((rollout_graph<f8e4m3>*)nullptr);
  }
  return nullptr;
}
class gpu {  // a device, seen without CUDA's headers
 public:
  explicit gpu(bool eager);
  ~gpu();
  std::unique_ptr<any_step> make(kind, shape const&);
  void write(void* to, void const* from, size_t bytes);
  void read(void* to, void const* from, size_t bytes);
  size_t captured() const, launched() const, allocations() const;

 private:
  struct hidden;
  std::unique_ptr<hidden> at_;
};
}  // namespace lab
