#include <program/recipe.hpp>

#include <weft/recipes/hybrid.hpp>

int program::run_hybrid(request const& asked) { return run_recipe<weft::rl::hybrid<>>(asked); }
