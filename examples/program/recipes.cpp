#include <program/recipes.hpp>

#include <weft/train/settings.hpp>

namespace program {
int run(request const& asked) {
  auto const& o = asked.options;
  auto const& name = o.algorithm.name;
  bool const reference = weft::train::wants_reference(o);
  if (o.device != "cpu") weft::io::refuse("device={}: this build runs on cpu", o.device);
  bool const fp8 = o.rollout.kv_cache_dtype == "fp8";
  if (fp8 && (name != "grpo" || reference))
    weft::io::refuse("rollout.kv_cache_dtype=fp8: only grpo without a reference model is compiled with it; use auto");
  if (fp8) return run_grpo_fp8(asked);
  if (name == "sft") return run_sft(asked);
  if (name == "grpo") return reference ? run_grpo_with_reference(asked) : run_grpo(asked);
  if (name == "reinforce") return reference ? run_reinforce_with_reference(asked) : run_reinforce(asked);
  if (name == "ppo") return reference ? run_ppo_with_reference(asked) : run_ppo(asked);
  weft::io::refuse("algorithm.name={}: there are sft, reinforce, grpo, ppo", name);
}
}  // namespace program
