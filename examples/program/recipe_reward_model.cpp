#include <program/recipe.hpp>

#include <weft/recipes/dpo.hpp>

int program::run_reward_model(request const& asked) { return run_recipe<weft::rl::reward_model<>, weft::rl::reward_objective>(asked); }
