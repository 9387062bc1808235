#include <program/recipes.hpp>

#include <weft/train/settings.hpp>

#include <cstdlib>
#include <filesystem>

namespace program {
std::string name_on_gpu(weft::train::options const& o) {
  return o.algorithm.name + (weft::train::wants_reference(o) ? "_with_reference" : "") + (o.rollout.kv_cache_dtype == "fp8" ? "_fp8" : "");
}
std::string plans_file() {
  char const *const cache = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (!cache && !home) return {};
  std::filesystem::path const folder = cache ? std::filesystem::path(cache) / "weft" : std::filesystem::path(home) / ".cache/weft";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::string() : (folder / "gemm_plans").string();
}
int run(request const& asked) {
  auto const& o = asked.options;
  auto const& name = o.algorithm.name;
  bool const reference = weft::train::wants_reference(o);
  if (o.device != "cpu" && o.device != "cuda") weft::io::refuse("device={}: there are cpu and cuda", o.device);
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
