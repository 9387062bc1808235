// recipes.hpp — the recipes that programs can run. Each is compiled in a file of its own, recipe_NAME.cpp, so that no program pays for all.
#pragma once
#include <program/program.hpp>

namespace program {
// The recipe that these options ask for, as gpu.hpp names it.
std::string name_on_gpu(weft::train::options const&);
std::string plans_file();  // where plans of matrix products are kept between runs; empty: nowhere
int run_grpo(request const&);
int run_grpo_fp8(request const&);  // KV pool of f8e4m3
int run_grpo_corrected_fp8(request const&);
int run_grpo_with_reference(request const&);
int run_reinforce_plus_plus(request const&);
int run_reinforce_plus_plus_with_reference(request const&);
int run_clip_cov(request const&);
int run_clip_cov_with_reference(request const&);
int run_remax(request const&);
int run_remax_with_reference(request const&);
int run_ppo(request const&);
int run_ppo_with_reference(request const&);
int run_sft(request const&);
int run_dpo(request const&);
int run_reward_model(request const&);
int run_distill(request const&);
int run_hybrid(request const&);

// The quick checks of doctor: a line for each warning on stderr; throws io::input_error for what a run would fail on.
void check_machine(std::string const& out);

int run(request const&);  // the one that the options name
}  // namespace program
