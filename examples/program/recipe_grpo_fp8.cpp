#include <program/recipe.hpp>

#include <weft/recipes/grpo.hpp>

int program::run_grpo_fp8(request const& asked) {
  return run_recipe<weft::rl::grpo<weft::rl::policy_losses, weft::local, weft::local, weft::f8e4m3>, weft::rl::policy_losses>(asked);
}
