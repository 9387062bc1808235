#include <program/recipe.hpp>

#include <weft/recipes/sft.hpp>

int program::run_sft(request const& asked) { return run_recipe<weft::rl::sft<>, weft::rl::sft_objective>(asked); }
