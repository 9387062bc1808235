#include <program/recipe.hpp>

#include <weft/recipes/remax.hpp>

int program::run_remax_with_reference(request const& asked) {
  return run_recipe<weft::rl::remax_with_reference<weft::rl::policy_losses>, weft::rl::policy_losses>(asked);
}
