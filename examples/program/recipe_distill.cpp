#include <program/recipe.hpp>

#include <weft/recipes/distill.hpp>

int program::run_distill(request const& asked) { return run_recipe<weft::rl::distill<>, weft::rl::distill_objective>(asked); }
