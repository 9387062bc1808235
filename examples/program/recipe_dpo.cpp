#include <program/recipe.hpp>

#include <weft/recipes/dpo.hpp>

int program::run_dpo(request const& asked) { return run_recipe<weft::rl::dpo<>, weft::rl::dpo_objective>(asked); }
