#include <program/recipe.hpp>

#include <weft/recipes/corrected.hpp>

int program::run_grpo_corrected_fp8(request const& asked) {
  return run_recipe<weft::rl::grpo_corrected<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
