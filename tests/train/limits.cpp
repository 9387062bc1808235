// What is refused before anything is taken or written, each in one line; and what a run does not do while it runs.
#include <dirent.h>

#include "lab.hpp"
using namespace lab;

namespace {
template <class Change> void refuses(char const* what, Change const& change) {
  folder at;
  auto o = options_for(at);
  change(o, at);
  CHECK_THROWS_WITH_AS(run(o), doctest::Contains(what), io::input_error);
  CHECK(!std::filesystem::exists(at.path / "out" / "metrics.jsonl"));
}
size_t open_files() {
  size_t n = 0;
  DIR* const d = ::opendir("/proc/self/fd");
  while (::readdir(d)) ++n;
  ::closedir(d);
  return n;
}
long resident_kilobytes() {
  long size = 0, resident = 0;
  std::FILE* const f = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(f, "%ld %ld", &size, &resident) != 2) resident = 0;
  std::fclose(f);
  return resident * 4;
}
}  // namespace

TEST_CASE("bad input is one clear line") {
  refuses("no model: give its Hugging Face folder", [](auto& o, auto&) { o.actor.path = ""; });
  refuses("there is no such folder", [](auto& o, auto&) { o.actor.path = "/nowhere"; });
  refuses("model.safetensors is missing", [](auto&, auto& at) { std::filesystem::remove(at.path / "model" / "model.safetensors"); });
  refuses("no training data", [](auto& o, auto&) { o.data.train_files.clear(); });
  refuses("fewer than data.train_batch_size=64", [](auto& o, auto&) { o.data.train_batch_size = 64; });
  refuses("is more than data.train_batch_size=6", [](auto& o, auto&) { o.actor.ppo_mini_batch_size = 7; });
  refuses("train_batch_size=0: it must be at least 1", [](auto& o, auto&) { o.data.train_batch_size = 0; });
  refuses("is more than the model's context of 64", [](auto& o, auto&) { o.data.max_response_length = 60; });
  refuses("loss_agg_mode=median: choose one of token-mean", [](auto& o, auto&) { o.actor.loss_agg_mode = "median"; });
  refuses("kl_loss_type=k9: choose one of", [](auto& o, auto&) { o.actor.kl_loss_type = "k9"; });
  refuses("train.jsonl:41", [](auto&, auto& at) { std::ofstream(at.path / "train.jsonl", std::ios::app) << "{\"prompt\": \n"; });
  refuses("dtype is 'int4'; supported are", [](auto&, auto& at) {
    auto c = io::hf_config_json(tiny_config(), "llama", {256});
    c.set("dtype", "int4");
    io::write_file(at.path / "model" / "config.json", c.dump(2));
  });
  refuses("kv_pages=1: one sequence of 66 tokens needs 2", [](auto& o, auto& at) {
    auto c = tiny_config();
    c.max_positions = 128;
    write_model(at.path / "model", c);
    o.rollout.kv_pages = 1, o.data.max_response_length = 60;
  });
  refuses("is more than 2147483647 tokens a step", [](auto& o, auto&) { o.rollout.n = 1 << 30; });
  refuses("the prompt has 4 tokens, more than 3", [](auto& o, auto&) { o.data.max_prompt_length = 3; });
}
TEST_CASE("validation alone needs no val_before_train, and writes no model") {
  folder at;
  auto o = options_for(at);
  o.trainer.val_only = true, o.trainer.val_before_train = false;
  auto const r = run(o);
  CHECK((r.first_accuracy >= 0 && r.last_accuracy == r.first_accuracy && r.steps == 0));
  CHECK(!std::filesystem::exists(at.path / "out" / "model"));
}
TEST_CASE("a folder that another job uses stays as it is") {
  folder at;
  auto const o = options_for(at);
  io::make_folder(at.path / "out");
  io::folder_lock const mine(at.path / "out");
  train::trainer<rl::grpo<>> t(o, digits);
  t.record("config.yaml", "changed");
  CHECK_THROWS_WITH_AS(t.train(), doctest::Contains("is in use by the job"), io::input_error);
  CHECK(!std::filesystem::exists(at.path / "out" / "config.yaml"));
}
TEST_CASE("a plan that does not fit is refused with its numbers") {
  refuses("the plan needs", [](auto& o, auto&) { o.device_memory = 100'000; });
}
TEST_CASE("the plan can be had without memory, and is what the run takes") {
  folder at;
  train::trainer<rl::grpo<>> t(options_for(at), digits);
  auto const text = t.plan();
  for (char const* word : {"generate", "policy_update", "kv_pool", "weights", "6 prompts x 4 = 24 samples"})
    CHECK(text.find(word) != text.npos);
  CHECK(t.plan(plan_form::dot).find("digraph") != std::string::npos);
  CHECK(t.plan(plan_form::mermaid).find("flowchart") != std::string::npos);
  CHECK(!std::filesystem::exists(at.path / "out"));
}
TEST_CASE("memory and file descriptors are flat over 1,000 steps" * doctest::test_suite("slow")) {
  folder at;
  auto o = options_for(at);
  o.trainer.total_training_steps = 1000;
  o.data.val_files.clear();
  long early = 0, late = 0;
  size_t files_early = 0, files_late = 0;
  i64 calls = 0;
  run(o, [&](train::answer const& a) {
    i64 const step = calls++ / 24;
    if (step == 50) early = resident_kilobytes(), files_early = open_files();
    if (step == 999) late = resident_kilobytes(), files_late = open_files();
    return digits(a);
  });
  CHECK(files_early == files_late);
  CHECK(late - early < 512);
}
