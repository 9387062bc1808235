#include <program/recipe.hpp>

#include <weft/recipes/grpo.hpp>

int program::run_grpo_with_reference(request const& asked) {
  return run_recipe<weft::rl::grpo_with_reference<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
