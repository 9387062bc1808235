// minimal_trainer.cpp — config, data, trainer, train: GRPO on arithmetic questions. minimal_trainer [OUT [STEPS]]
#include <cstdio>
#include <weft/recipes/grpo.hpp>
#include <weft/train/trainer.hpp>

int main(int argc, char** argv) try {
  weft::train::options o;
  o.algorithm.name = o.algorithm.adv_estimator = "grpo", o.actor.path = "examples/arithmetic/model";
  o.data.train_files = {"examples/arithmetic/train.jsonl"}, o.data.val_files = {"examples/arithmetic/val.jsonl"};
  o.data.train_batch_size = o.actor.ppo_mini_batch_size = 32;
  o.data.max_prompt_length = o.data.max_response_length = 16;
  o.rollout.n = 8, o.actor.optim.lr = 2e-4;
  o.trainer.default_local_dir = argc > 1 ? argv[1] : "runs/minimal";
  o.trainer.total_training_steps = argc > 2 ? std::stoll(argv[2]) : 100;
  weft::train::trainer<weft::rl::grpo<>> trainer(o);  // another reward: trainer(o, my_function)
  auto const r = trainer.train();
  std::printf("accuracy %.3f -> %.3f in %.1f s\n", r.first_accuracy, r.last_accuracy, r.seconds);
} catch (std::exception const& e) { return std::fprintf(stderr, "minimal_trainer: %s\n", e.what()), 2; }
