// own_stage.cpp — a reward stage and a loss term of one's own, in a GRPO graph of one's own, run by weft's trainer. A random byte-level
// model learns to write digits. The exit code says whether the reward rose.
#include <algorithm>
#include <cstdio>
#include <weft/recipes/grpo.hpp>
#include <weft/train/trainer.hpp>
using namespace weft;

// ---- yours: a reward, a loss term, a graph ----------------------------------------------------------------------------
struct share_of_digits {                                      // a stage: the parameters of run() are its edges
  static void run(in<rl::tokens<rl::training>> t, in<rl::lengths<rl::training>> n, out<rl::scores<rl::training>> score) {
    for (size_t s = 0; s < n.count(); ++s) {
      i32 const* const ids = t.data + s * t.extent<rl::position<rl::training>>();   // ids below 256 are bytes
      auto const digits = std::count_if(ids, ids + n.flat(s), [](i32 id) { return id >= '0' && id <= '9'; });
      score.flat(s) = {f32(digits) / f32(n.flat(s)), n.flat(s) ? rl::reward_result::scored : rl::reward_result::absent};
    }
  }
};
struct stay_near : objective::token_term<> {                  // (lp - old)^2 / 2, and its derivative in lp
  static constexpr char const* name = "actor/stay_near";      // in metrics.jsonl
  double strength = 0.01;
  template <class T> objective::token_loss<T> operator()(objective::token<T> const& t, objective::sequence<T> const&) const {
    T const d = t.log_prob - t.old_log_prob;
    return {T(strength) * d * d / 2, T(strength) * d, 0};
  }
};
using my_objective = objective::sum<objective::ppo_clip, stay_near>;
using my_graph = graph<
    rl::fed_prompts<rl::training>, rl::fed_update<rl::actor>,
    rl::generate<rl::actor, rl::training>, share_of_digits, rl::include_scored, rl::group_advantage,
    rl::update_epochs<rl::actor, rl::policy_update<rl::actor, my_objective>, local>,
    rl::kept_samples<rl::training>, keep<rl::advantages>, keep<rl::group_drops>, rl::kept_update<rl::actor>>;

// ---- a random model, a few prompts, the trainer ------------------------------------------------------------------------
int main() {
  auto const here = std::filesystem::temp_directory_path() / ("weft-own-stage-" + std::to_string(::getpid()));
  model::config const c{
      .layers = 1, .hidden = 32, .intermediate = 64, .heads = 4, .kv_heads = 2, .head_dim = 8, .vocab = 257, .max_positions = 64};
  std::vector<f32> w(model::parameter_count(c));
  model::initialise(c, 1, w.data());
  io::make_folder(here);
  io::write_file(here / "config.json", io::hf_config_json(c, "llama", {256}).dump());
  io::write_byte_tokenizer(here, {"<|endoftext|>"}, c.max_positions);
  io::write_hf_weights(here, c, w.data(), io::dtype::F32);
  std::string rows;                                           // the data: JSONL
  for (int i = 0; i < 16; ++i) rows += R"({"prompt":"say )" + std::to_string(i) + "\"}\n";
  io::write_file(here / "train.jsonl", rows);

  train::options o;
  o.algorithm.name = o.algorithm.adv_estimator = "grpo", o.actor.path = here;
  o.data.train_files = {here / "train.jsonl"}, o.trainer.default_local_dir = here / "run";
  o.data.train_batch_size = o.actor.ppo_mini_batch_size = 16;
  o.data.max_prompt_length = 10, o.data.max_response_length = 8, o.rollout.n = 8;
  o.actor.optim.lr = 5e-3, o.actor.ppo_epochs = 2, o.trainer.total_training_steps = 30;

  double first = -1, last = -1;
  train::trainer<my_graph, my_objective> trainer(o);
  trainer.after_step = [&](train::i64 step, io::metrics const& m) {
    last = m.find("critic/score/mean")->value();
    if (first < 0) first = last;
    double const distance = m.find(stay_near::name)->value();
    if (step % 5 == 0) std::printf("step %2d: share of digits %.3f, distance %.1e\n", int(step), last, distance);
  };
  trainer.train();
  std::filesystem::remove_all(here);
  std::printf("share of digits %.3f -> %.3f\n", first, last);
  return last > 0.9 ? 0 : 1;
}
