#include <program/recipe.hpp>

#include <weft/recipes/remax.hpp>

int program::run_remax(request const& asked) {
  return run_recipe<weft::rl::remax<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
