#include <program/recipe.hpp>

#include <weft/recipes/reinforce_plus_plus.hpp>

int program::run_reinforce_plus_plus(request const& asked) {
  return run_recipe<weft::rl::reinforce_plus_plus<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
