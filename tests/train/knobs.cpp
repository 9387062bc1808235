// Knobs: suffixes, ambiguity, aliases, nearest names, types and ranges, what follows what, YAML there and back.
#include <doctest/doctest.h>
#include <weft/train/knobs.hpp>

#include <program/yaml.hpp>

#include <fstream>
#include <sstream>

using weft::io::input_error;
using weft::train::knobs, weft::train::options;

static std::string said(auto const& f) {
  try {
    f();
  } catch (input_error const& e) { return e.what(); }
  return "nothing";
}
static std::string refused(char const* pair) {
  options o;
  knobs k(o);
  return said([&] { k.assign(pair, "test"), k.resolve(); });
}
static options with(std::initializer_list<char const*> pairs) {
  options o;
  knobs k(o);
  for (auto p : pairs) k.assign(p, "test");
  k.resolve();
  return o;
}

TEST_CASE("the defaults are verl's") {
  options const o = with({});
  CHECK(o.data.train_batch_size == 1024);
  CHECK(o.actor.ppo_mini_batch_size == 256);
  CHECK(o.actor.optim.lr == 1e-6);
  CHECK(o.critic.optim.lr == 1e-5);
  CHECK(o.rollout.n == 1);
  CHECK(o.actor.loss_agg_mode == "token-mean");
  CHECK(o.algorithm.name == "ppo");
  CHECK(o.algorithm.adv_estimator == "gae");
}

TEST_CASE("full names, suffixes, Hydra's plus and aliases set the same field") {
  for (auto p : {"data.train_batch_size=64", "train_batch_size=64", "+data.train_batch_size=64", "rollout_batch_size=64"})
    CHECK(with({p}).data.train_batch_size == 64);
  for (auto p : {"actor_rollout_ref.rollout.n=8", "rollout.n=8"}) CHECK(with({p}).rollout.n == 8);
  for (auto p : {"model_name_or_path=m", "actor_rollout_ref.model.path=m"}) CHECK(with({p}).actor.path == "m");
  CHECK(with({"checkpoint_dir=out"}).trainer.default_local_dir == "out");
  CHECK(with({"save_interval=5"}).trainer.save_freq == 5);
  CHECK(with({"kv_cache_dtype=auto"}).rollout.kv_cache_dtype == "auto");
  CHECK(with({"max_actor_ckpt_to_keep=2"}).trainer.max_ckpt_to_keep == 2);
  CHECK(with({"actor.optim.lr_scheduler_type=cosine"}).actor.optim.warmup_style == "cosine");
  CHECK(with({"seed=3"}).seed == 3);  // a full name wins over data.seed's suffix
  CHECK(with({"data.seed=3"}).data.seed == 3);
  CHECK(with({"enable_gradient_clipping=false"}).critic.optim.clip_grad == 0);
  CHECK(with({"enable_gradient_clipping=true"}).actor.optim.clip_grad == 1);
}

TEST_CASE("every knob answers to its full name, and to each suffix that nothing else has") {
  options o;
  knobs k(o);
  for (auto const& one : k.all()) {
    CAPTURE(one.name);
    CHECK_NOTHROW(k.set(one.name, one.choices.empty() ? one.text() : one.choices.substr(0, one.choices.find('|')), "test"));
    CHECK(k[one.name].origin == "test");
    CHECK(!one.help.empty());
    if (!one.followed.empty()) CHECK(k[one.followed].to.index() == one.to.index());
  }
  for (auto const& a : weft::train::aliases) CHECK(k[a.means].name == a.means);
}

TEST_CASE("an ambiguous suffix lists its matches, an unknown key its nearest name") {
  std::string const lr = refused("lr=1");
  CHECK(lr.find("ambiguous") != std::string::npos);
  CHECK(lr.find("actor_rollout_ref.actor.optim.lr") != std::string::npos);
  CHECK(lr.find("critic.optim.lr") != std::string::npos);
  CHECK(refused("train_bach_size=64") == "unknown knob 'train_bach_size'; the nearest is data.train_batch_size");
  CHECK(refused("rolout.n=64") == "unknown knob 'rolout.n'; the nearest is actor_rollout_ref.rollout.n");
  CHECK(refused("model_name=x").find("nearest") != std::string::npos);
  CHECK(refused("=1").find("unknown knob") != std::string::npos);
  CHECK(refused("batch_size=1").find("unknown knob") != std::string::npos);  // a suffix starts after a dot
  CHECK(refused("train_batch_size").find("expected key=value") != std::string::npos);
}

TEST_CASE("wrong types and ranges name key, value, type and range") {
  CHECK(refused("train_batch_size=many") == "data.train_batch_size='many': expected a whole number of at least 1");
  CHECK(refused("train_batch_size=0") == "data.train_batch_size='0': expected a whole number of at least 1");
  CHECK(refused("train_batch_size=1.5") == "data.train_batch_size='1.5': expected a whole number of at least 1");
  CHECK(refused("train_batch_size=99999999999999999999") ==
        "data.train_batch_size='99999999999999999999': expected a whole number of at least 1");
  CHECK(refused("rollout.top_p=1.5") == "actor_rollout_ref.rollout.top_p='1.5': expected a number above 0, at most 1");
  CHECK(refused("rollout.temperature=0") == "actor_rollout_ref.rollout.temperature='0': expected a number from 0.0001 to 10000");
  CHECK(refused("rollout.temperature=nan").find("expected a number") != std::string::npos);
  CHECK(refused("data.shuffle=perhaps") == "data.shuffle='perhaps': expected true or false");
  CHECK(refused("algorithm=best") == "algorithm.name='best': expected one of " + std::string(weft::train::recipe_names));
  CHECK(refused("actor.optim.betas=[0.9]") ==
        "actor_rollout_ref.actor.optim.betas='[0.9]': expected two numbers such as [0.9,0.999] from 0 to 0.999999");
  CHECK(refused("device_memory=12Q").find("a size in bytes") != std::string::npos);
  CHECK(refused("device_memory=99999999T").find("a size in bytes") != std::string::npos);
  CHECK(refused("rollout.top_k=0").find("expected -1") != std::string::npos);
}

TEST_CASE("values that mean nothing are refused before a run begins") {
  for (char const* pair : {"rollout.top_p=0", "rollout.temperature=1e-9", "rollout.top_k=5000000000",
                           "actor.ppo_max_token_len_per_gpu=4294967297", "trainer.total_training_steps=0", "rollout.top_k=0",
                           "val_kwargs.top_k=0", "val_kwargs.temperature=1e-9", "resume_mode=resume_path"}) {
    CAPTURE(pair);
    CHECK(refused(pair) != "nothing");
  }
}
TEST_CASE("values: sizes, lists, null, quotes") {
  CHECK(with({"device_memory=141G"}).device_memory == 141'000'000'000);
  CHECK(with({"device_memory=512Mi"}).device_memory == 512 * 1024 * 1024);
  CHECK(with({"train_files=[a.jsonl, 'b.jsonl']"}).data.train_files == std::vector<std::string>{"a.jsonl", "b.jsonl"});
  CHECK(with({"train_files=a.jsonl"}).data.train_files == std::vector<std::string>{"a.jsonl"});
  CHECK(with({"total_training_steps=null"}).trainer.total_training_steps == -1);
  CHECK(with({"actor.optim.betas=[0.8, 0.95]"}).actor.optim.betas == std::array{0.8, 0.95});
  CHECK(with({"data.shuffle=False"}).data.shuffle == false);
  CHECK(refused("train_batch_size=null").find("expected") != std::string::npos);
}

TEST_CASE("what follows another knob does so until it is set") {
  CHECK(with({"actor.clip_ratio=0.1"}).actor.clip_ratio_low == 0.1);
  options const o = with({"actor.clip_ratio=0.1", "clip_ratio_high=0.28", "actor.ppo_epochs=4", "actor_rollout_ref.model.path=m"});
  CHECK(o.actor.clip_ratio_low == 0.1);
  CHECK(o.actor.clip_ratio_high == 0.28);
  CHECK(o.critic.ppo_epochs == 4);
  CHECK(o.critic.path == "m");
  CHECK(o.ref.path == "m");
  CHECK(with({"critic.ppo_epochs=2", "actor.ppo_epochs=4"}).critic.ppo_epochs == 2);
}

TEST_CASE("recipe and estimator name each other") {
  CHECK(with({"algorithm=grpo"}).algorithm.adv_estimator == "grpo");
  CHECK(with({"adv_estimator=rloo"}).algorithm.name == "grpo");
  CHECK(with({"adv_estimator=gae"}).algorithm.name == "ppo");
  CHECK(with({"algorithm=ppo"}).algorithm.adv_estimator == "gae");
  CHECK(refused("algorithm=ppo") == "nothing");
  CHECK_THROWS_AS(with({"algorithm=grpo", "adv_estimator=gae"}), input_error);
  CHECK_THROWS_AS(with({"algorithm=sft", "adv_estimator=gae"}), input_error);
  CHECK_THROWS_AS(with({"algorithm=rloo", "adv_estimator=gae"}), input_error);
}

TEST_CASE("the name of a recipe sets what makes it one, where nobody set it") {
  for (auto const& p : weft::train::presets) {
    CAPTURE(p.name);
    auto const o = with({fmt::format("algorithm={}", p.name).c_str()});
    if (!p.adv_estimator.empty()) CHECK(o.algorithm.adv_estimator == p.adv_estimator);
    CHECK(fmt::format("|{}|", weft::train::recipe_names).find(fmt::format("|{}|", p.name)) != std::string::npos);
  }
  auto const o = with({"algorithm=gspo", "clip_ratio_high=0.3"});
  CHECK(o.actor.loss_mode == "gspo");
  CHECK(o.actor.clip_ratio_low == 3e-4);
  CHECK(o.actor.clip_ratio_high == 0.3);
  CHECK(with({"algorithm=dr_grpo"}).algorithm.norm_adv_by_std_in_grpo == false);
  options said;
  knobs k(said);
  k.assign("algorithm=gspo", "test"), k.resolve();
  CHECK(k["actor_rollout_ref.actor.policy_loss.loss_mode"].origin == "algorithm.name=gspo");
}

TEST_CASE("names without effect are accepted and noted; what is missing is refused") {
  options o;
  knobs k(o);
  for (auto p :
       {"rollout.enforce_eager=True", "actor.fsdp_config.param_offload=False", "use_vllm=true", "trainer.logger=[console]", "zero_stage=2"})
    k.assign(p, "test");
  CHECK(k.notes().size() == 5);
  CHECK(k.notes()[0] == "rollout.enforce_eager=True: no effect, training and generation are one engine");
  k.assign("lora_rank=0", "test"), k.assign("multi_turn.enable=False", "test");
  CHECK(k.notes().size() == 5);
  CHECK(refused("lora_rank=16") == "lora_rank='16': not in this version; only 0 is accepted here");
  CHECK(refused("multi_turn.enable=True").find("only false") != std::string::npos);
  CHECK(refused("reward_model.endpoint=http://x").find("not in this version") != std::string::npos);
}

TEST_CASE("YAML nests the same names, and the resolved configuration reads back equal") {
  auto const entries = program::parse_yaml("algorithm: grpo\ndata:\n  train_batch_size: 32\n  train_files: [a, b]\nactor_rollout_ref:\n  "
                                           "rollout: {n: 4}\nactor.optim.lr: 1.0e-4\n",
                                           "t.yaml");
  options o, back;
  knobs k(o), again(back);
  for (auto const& e : entries) k.set(e.key, e.value, e.where);
  k.resolve();
  CHECK(o.algorithm.name == "grpo");
  CHECK(o.data.train_batch_size == 32);
  CHECK(o.data.train_files == std::vector<std::string>{"a", "b"});
  CHECK(o.rollout.n == 4);
  CHECK(o.actor.optim.lr == 1e-4);
  CHECK(k["data.train_batch_size"].origin == "t.yaml:3");
  CHECK(k.overrides().size() == 5);
  CHECK(k.overrides()[1] == "data.train_batch_size=32 (default 1024; t.yaml:3)");
  k.set("trainer.default_local_dir", "a \"b\": c", "test");
  for (auto const& e : program::parse_yaml(k.yaml(), "r.yaml"))
    if (e.key != "algorithm.adv_estimator") again.set(e.key, e.value, e.where);
  again.resolve();
  CHECK(again.yaml() == k.yaml());
}

TEST_CASE("bad YAML is one line with file and line") {
  auto const bad = [](std::string const& text) { return said([&] { program::parse_yaml(text, "t.yaml"); }); };
  CHECK(bad("a: [1\nb: 2").starts_with("t.yaml:"));
  CHECK(bad("- 1\n- 2").find("names and values") != std::string::npos);
  CHECK(bad("data:\n  seed: 1\n  seed: 2\n").find("t.yaml:3: data.seed is set twice") == 0);
  CHECK(bad("data: {x: [[1]]}").find("t.yaml:1") == 0);
  CHECK(bad("a: &a [1]\nb: *a\n") == "nothing");
  CHECK(bad(std::string(200000, '[')).starts_with("t.yaml"));
  CHECK(bad("").empty() == false);
  CHECK(said([] { program::read_yaml("no/such/file.yaml"); }).find("no/such/file.yaml") != std::string::npos);
}

TEST_CASE("docs/knobs.md lists every knob with its default") {
  std::ifstream in("docs/knobs.md");
  std::stringstream text;
  text << in.rdbuf();
  options o;
  knobs const all(o);
  for (auto const& k : all.all()) {
    CAPTURE(k.name);
    CHECK(text.str().find(fmt::format("| `{}` | {} |", k.name, k.before.empty() ? "" : "`" + k.before + "`")) != std::string::npos);
  }
}
