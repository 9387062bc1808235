#include <program/recipe.hpp>

#include <weft/recipes/grpo.hpp>

int program::run_reinforce(request const& asked) {
  return run_recipe<weft::rl::grpo<weft::rl::reinforce_objective>, weft::rl::reinforce_objective>(asked);
}
