// What must not change a bit: threads, micro-batches of a pass without gradient, slots, poisoned memory; and what follows from it.
#include "lab.hpp"
using namespace lab;

TEST_CASE("the first update of a rollout has ratio exactly 1") {
  folder at;
  for (i64 tokens : {16, 40, 4096})
    for (i64 slots : {1, 5, 1024}) {
      std::string const out = "ratio" + std::to_string(tokens) + "-" + std::to_string(slots);
      auto o = options_for(at, out.c_str());
      o.actor.ppo_max_token_len_per_gpu = tokens;
      o.rollout.max_num_seqs = slots;
      o.threads = slots == 5 ? 3 : 1;
      run(o);
      for (char const* name : {"actor/ppo_kl", "actor/pg_clipfrac", "actor/pg_clipfrac_lower"}) {
        auto const values = metric(at.path / out, name);
        CHECK(values.size() == 3);
        for (double v : values) CHECK(v == 0.0);
      }
      CHECK(metric(at.path / out, "critic/score/mean")[0] > 0);
    }
}
TEST_CASE("with several mini-batches the later ones differ from the policy that sampled") {
  folder at;
  auto o = options_for(at);
  o.actor.ppo_mini_batch_size = 2;
  run(o);
  CHECK(metric(at.path / "out", "actor/ppo_kl")[0] != 0.0);
}
TEST_CASE("threads and slots change no bit of a run; micro-batches only the last ones") {
  folder at;
  auto const with = [&](i64 threads, i64 slots, i64 tokens, char const* out) {
    auto o = options_for(at, out);
    o.threads = threads, o.rollout.max_num_seqs = slots, o.actor.ppo_max_token_len_per_gpu = tokens;
    run(o);
    return weights(at.path / out);
  };
  auto const base = with(1, 1024, 64, "a");
  CHECK(base == with(3, 1024, 64, "b"));
  CHECK(base == with(2, 3, 64, "c"));
  auto const cut = with(1, 1024, 20, "d");
  REQUIRE(cut.size() == base.size());
  auto const losses = metric(at.path / "a", "actor/grad_norm"), others = metric(at.path / "d", "actor/grad_norm");
  for (size_t i = 0; i < losses.size(); ++i) CHECK(std::abs(losses[i] - others[i]) < 1e-5 * losses[i]);
}
TEST_CASE("recompute changes no bit") {
  folder at;
  auto o = options_for(at, "a"), again = options_for(at, "b");
  again.actor.enable_gradient_checkpointing = true;
  run(o), run(again);
  CHECK(weights(at.path / "a") == weights(at.path / "b"));
}
TEST_CASE("PPO with a reference: KL of a policy that has not moved is exactly 0") {
  folder at;
  auto o = options_for(at);
  o.algorithm.name = "ppo";
  o.algorithm.use_kl_in_reward = true;
  o.actor.use_kl_loss = true;
  run<rl::ppo_with_reference<>>(o);
  auto const loss = metric(at.path / "out", "actor/kl_loss"), reward = metric(at.path / "out", "actor/reward_kl_penalty");
  REQUIRE(loss.size() == 3);
  CHECK(loss[0] == 0.0);
  CHECK(reward[0] == 0.0);
  CHECK(loss[2] > 0.0);
  CHECK(metric(at.path / "out", "critic/vf_loss").size() == 3);
}
