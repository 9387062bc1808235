#include <program/recipe.hpp>

#include <weft/recipes/grpo.hpp>

int program::run_reinforce_with_reference(request const& asked) {
  return run_recipe<weft::rl::grpo_with_reference<weft::rl::reinforce_objective>, weft::rl::reinforce_objective>(asked);
}
