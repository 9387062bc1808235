// A run that is killed and started again ends with the bits of one that was not.
#include <sys/wait.h>

#include "lab.hpp"
using namespace lab;

namespace {
// Runs in a child process; `kill` as WEFT_KILL_AT, null: to the end. Returns whether it was killed.
template <class Run> bool in_child(char const* kill, Run const& go) {
  pid_t const child = ::fork();
  if (child == 0) {
    if (kill) ::setenv("WEFT_KILL_AT", kill, 1);
    std::freopen("/dev/null", "w", stderr);
    int code = 0;
    try {
      go();
    } catch (...) { code = 1; }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}
train::options long_run(folder const& at, char const* out) {
  auto o = options_for(at, out);
  o.trainer.total_training_steps = 6;
  o.trainer.save_freq = 2;
  o.trainer.max_ckpt_to_keep = 2;
  o.actor.ppo_mini_batch_size = 3;
  o.actor.ppo_epochs = 2;
  o.actor.shuffle = true;
  return o;
}
template <class Graph, class Change> void compare(std::initializer_list<char const*> kills, Change const& change) {
  folder at;
  auto whole = long_run(at, "whole");
  change(whole);
  in_child(nullptr, [&] { run<Graph>(whole); });
  auto const wanted = weights(at.path / "whole");
  REQUIRE(!wanted.empty());
  int n = 0;
  for (char const* kill : kills) {
    CAPTURE(kill);
    std::string const name = "killed" + std::to_string(n++);
    auto o = long_run(at, name.c_str());
    change(o);
    CHECK(in_child(kill, [&] { run<Graph>(o); }));
    in_child(kill, [&] { run<Graph>(o); });  // killed once more, if it comes by there again
    in_child(nullptr, [&] { run<Graph>(o); });
    CHECK(weights(at.path / name) == wanted);
    CHECK(metric(at.path / name, "critic/score/mean") == metric(at.path / "whole", "critic/score/mean"));
    CHECK(metric(at.path / name, "training/global_step") == std::vector<double>{1, 2, 3, 4, 5, 6});
  }
}
}  // namespace

TEST_CASE("kill -9 at any moment, then resume: the same bits (GRPO)") {
  compare<rl::grpo<>>({"step:1", "step:3", "sample:5", "sample:61", "journal:7", "stepped:4", "checkpoint_blob:1", "checkpoint_blob:5",
                       "checkpoint_manifest:2", "checkpoint_rename:1", "checkpoint_prune:2"},
                      [](train::options&) {});
}
TEST_CASE("kill -9 at any moment, then resume: the same bits (PPO, adaptive KL)") {
  compare<rl::ppo_with_reference<>>({"step:4", "sample:77", "checkpoint_blob:8", "checkpoint_rename:2"}, [](train::options& o) {
    o.algorithm.name = "ppo";
    o.algorithm.use_kl_in_reward = true;
    o.algorithm.kl_ctrl.type = "adaptive";
    o.trainer.critic_warmup = 2;
  });
}
TEST_CASE("samples of the step that was killed are taken from the journal") {
  folder at;
  auto o = long_run(at, "out");
  CHECK(in_child("sample:60", [&] { run(o); }));  // step 3 of 24 samples: 12 are done
  in_child(nullptr, [&] { run(o); });
  auto const known = metric(at.path / "out", "rollout/from_journal");
  CHECK(known == std::vector<double>{0, 0, 12, 0, 0, 0});
}
TEST_CASE("what the journal holds counts only where it would be drawn again") {
  auto const restarted = [](auto const& change) {
    folder at;
    auto const o = long_run(at, "out");
    CHECK(in_child("stepped:2", [&] { run(o); }));  // two steps in the journal, no checkpoint
    auto changed = o, fresh = long_run(at, "fresh");
    change(changed), change(fresh);
    in_child(nullptr, [&] { run(changed); });
    in_child(nullptr, [&] { run(fresh); });
    CHECK(weights(at.path / "out") == weights(at.path / "fresh"));
    return metric(at.path / "out", "rollout/from_journal");
  };
  CHECK(restarted([](auto&) {}) == std::vector<double>{24, 24, 0, 0, 0, 0});
  CHECK(restarted([](auto& o) { o.actor.optim.lr = 5e-3; }) ==
        std::vector<double>{24, 0, 0, 0, 0, 0});  // the second step has other weights
  CHECK(restarted([](auto& o) { o.rollout.temperature = 0.7; }) == std::vector<double>(6, 0.0));
  CHECK(restarted([](auto& o) { o.seed = 2, o.data.seed = 1; }) == std::vector<double>(6, 0.0));
}
TEST_CASE("a run starts from the checkpoint that resume_from_path names, or not at all") {
  folder at;
  auto o = long_run(at, "first");
  run(o);
  auto second = long_run(at, "second");
  second.trainer.resume_mode = "resume_path";
  second.trainer.resume_from_path = (at.path / "first" / "global_step_4/").string();
  run(second);
  CHECK(weights(at.path / "second") == weights(at.path / "first"));
  CHECK(metric(at.path / "second", "training/global_step") == std::vector<double>{5, 6});
  second.trainer.resume_from_path = (at.path / "first").string();
  CHECK_THROWS_WITH_AS(run(second), doctest::Contains("is no checkpoint; give a folder global_step_N"), io::input_error);
  o.trainer.resume_mode = "disable";
  CHECK_THROWS_WITH_AS(run(o), doctest::Contains("has checkpoints, and trainer.resume_mode=disable"), io::input_error);
}
TEST_CASE("another seed, batch or data set does not go on with a run") {
  folder at;
  auto o = options_for(at);
  run(o);
  o.trainer.total_training_steps = 5;
  auto other = o;
  other.seed = 2;
  CHECK_THROWS_WITH_AS(run(other), doctest::Contains("seed was 1, this run has 2"), io::input_error);
  other = o;
  other.rollout.n = 3;
  CHECK_THROWS_WITH_AS(run(other), doctest::Contains("rollout.n was 4, this run has 3"), io::input_error);
  run(o);
  CHECK(metric(at.path / "out", "training/global_step") == std::vector<double>{1, 2, 3, 4, 5});
}
