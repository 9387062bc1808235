#include <program/recipe.hpp>

#include <weft/recipes/grpo.hpp>

int program::run_grpo(request const& asked) { return run_recipe<weft::rl::grpo<weft::rl::policy_losses>, weft::rl::policy_losses>(asked); }
