#include <program/recipes.hpp>

#include <weft/train/presets.hpp>
#include <weft/train/settings.hpp>

#include <cstdlib>
#include <filesystem>

namespace program {
namespace {
// The graph of recipes/ that these options need.
std::string graph_of(weft::train::options const& o) {
  auto const &name = o.algorithm.name, &estimator = o.algorithm.adv_estimator, &mode = o.actor.loss_mode;
  bool const selects = mode == "clip_cov" || mode == "kl_cov";
  if (name == "distill" || name == "hybrid" || weft::train::preset_of(name).adv_estimator.empty()) return name;
  if (selects && (estimator == "gae" || estimator == "remax"))
    weft::io::refuse("actor.policy_loss.loss_mode={}: compiled for group estimators; choose another than adv_estimator={}", mode,
                     estimator);
  return estimator == "gae"            ? "ppo"
         : estimator == "remax"        ? "remax"
         : selects                     ? "clip_cov"
         : weft::train::wants_batch(o) ? "reinforce_plus_plus"
                                       : "grpo";
}
}  // namespace
std::string name_on_gpu(weft::train::options const& o) {
  return graph_of(o) + (weft::train::wants_reference(o) ? "_with_reference" : "") + (weft::train::wants_correction(o) ? "_corrected" : "") +
         (o.rollout.kv_cache_dtype == "fp8" ? "_fp8" : "");
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
  std::string const graph = graph_of(o);
  bool const reference = weft::train::wants_reference(o), fp8 = o.rollout.kv_cache_dtype == "fp8";
  if (o.device != "cpu" && o.device != "cuda") weft::io::refuse("device={}: there are cpu and cuda", o.device);
  if (fp8 && (graph != "grpo" || reference))
    weft::io::refuse("rollout.kv_cache_dtype=fp8: only grpo and its kin without a reference model are compiled with it; use auto");
  bool const corrects = weft::train::wants_correction(o);
  if (corrects && !fp8)
    weft::io::refuse("algorithm.rollout_correction: without kv_cache_dtype=fp8 log-probs of rollout and training are equal to the bit, and "
                     "every weight is 1; leave it out");
  if (fp8) return corrects ? run_grpo_corrected_fp8(asked) : run_grpo_fp8(asked);
  if (graph == "sft") return run_sft(asked);
  if (graph == "dpo") return run_dpo(asked);
  if (graph == "reward_model") return run_reward_model(asked);
  if (graph == "distill") return run_distill(asked);
  if (graph == "hybrid") return run_hybrid(asked);
  if (graph == "ppo") return reference ? run_ppo_with_reference(asked) : run_ppo(asked);
  if (graph == "remax") return reference ? run_remax_with_reference(asked) : run_remax(asked);
  if (graph == "clip_cov") return reference ? run_clip_cov_with_reference(asked) : run_clip_cov(asked);
  if (graph == "reinforce_plus_plus") return reference ? run_reinforce_plus_plus_with_reference(asked) : run_reinforce_plus_plus(asked);
  return reference ? run_grpo_with_reference(asked) : run_grpo(asked);
}
}  // namespace program
