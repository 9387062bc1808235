// A small model and an arithmetic data set on disk, and a trainer over them.
#pragma once
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <weft/engine/cpu_instances.hpp>
#include <weft/recipes/grpo.hpp>
#include <weft/recipes/ppo.hpp>
#include <weft/recipes/sft.hpp>
#include <weft/train/trainer.hpp>

namespace lab {
using namespace weft;
using train::i64;

struct folder {  // removed at the end
  io::path path;
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-train-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path = name;
  }
  ~folder() { std::filesystem::remove_all(path); }
};

inline model::config tiny_config() {
  model::config c;
  c.layers = 2, c.hidden = 32, c.intermediate = 64, c.heads = 4, c.kv_heads = 2, c.head_dim = 8, c.vocab = 257, c.max_positions = 64,
  c.tied = true;
  return c;
}
// A model folder with random weights, far enough from uniform that samples differ and some are right.
inline void write_model(io::path const& to, model::config const& c = tiny_config(), u64 seed = 3) {
  io::make_folder(to);
  io::json config = io::hf_config_json(c, "llama", {256});
  config.set("dtype", "float32");
  io::write_file(to / "config.json", config.dump(2));
  io::write_byte_tokenizer(to, {"<|endoftext|>"}, c.max_positions);
  std::vector<f32> w(model::parameter_count(c));
  model::initialise(c, seed, w.data());
  for (f32& x : w)
    if (x != 1) x *= 4;
  io::write_hf_weights(to, c, w.data(), io::dtype::F32);
}
inline void write_rows(io::path const& to, int rows, int first = 0, char const* truth = nullptr) {
  std::ofstream out(to);
  for (int i = first; i < first + rows; ++i) {
    std::string const answer = truth ? truth : std::to_string(i % 7 + i % 5);
    out << R"({"data_source":"sums","prompt":")" << i % 7 << '+' << i % 5 << '=' << R"(","response":")" << answer
        << R"(","reward_model":{"style":"rule","ground_truth":")" << answer << R"("},"extra_info":{"index":)" << i << "}}\n";
  }
}
// The score of a sample is the share of its bytes that are digits: random models get something, and not all the same.
inline rl::reward_result digits(train::answer const& a) {
  double n = 0;
  for (char c : a.text) n += c >= '0' && c <= '9';
  return train::scored(a.ids.empty() ? 0 : n / double(a.ids.size()));
}
inline train::options options_for(folder const& at, char const* out = "out") {
  train::options o;
  if (!std::filesystem::exists(at.path / "model")) {
    write_model(at.path / "model");
    write_rows(at.path / "train.jsonl", 40);
    write_rows(at.path / "val.jsonl", 9, 100);
  }
  o.algorithm.name = "grpo";
  o.actor.path = (at.path / "model").string();
  o.data.train_files = {(at.path / "train.jsonl").string()};
  o.data.val_files = {(at.path / "val.jsonl").string()};
  o.data.train_batch_size = 6;
  o.data.max_prompt_length = 6;
  o.data.max_response_length = 7;
  o.actor.ppo_mini_batch_size = o.critic.ppo_mini_batch_size = 6;
  o.actor.ppo_max_token_len_per_gpu = o.critic.ppo_max_token_len_per_gpu = 64;
  o.actor.enable_gradient_checkpointing = o.critic.enable_gradient_checkpointing = false;
  o.actor.optim.lr = o.critic.optim.lr = 1e-3;
  o.rollout.n = 4;
  o.trainer.total_training_steps = 3;
  o.trainer.default_local_dir = (at.path / out).string();
  o.threads = 1;
  return o;
}
inline std::string text_of(io::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}
// A metric of every step, from the run's file; steps that lack it are left out.
inline std::vector<double> metric(io::path const& out, std::string const& name) {
  std::vector<double> values;
  std::istringstream lines(text_of(out / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (auto const at = line.find("\"" + name + "\":"); at != line.npos)
      values.push_back(std::strtod(line.c_str() + at + name.size() + 3, nullptr));
  return values;
}
inline std::string weights(io::path const& out) { return text_of(out / "model" / "model.safetensors"); }

template <class Graph = rl::grpo<>, class Objective = rl::policy_objective>
train::result run(train::options const& o, train::reward_function f = digits) {
  train::trainer<Graph, Objective> t(o, std::move(f));
  return t.train();
}
}  // namespace lab
