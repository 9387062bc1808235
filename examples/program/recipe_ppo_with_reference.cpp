#include <program/recipe.hpp>

#include <weft/recipes/ppo.hpp>

int program::run_ppo_with_reference(request const& asked) {
  return run_recipe<weft::rl::ppo_with_reference<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
