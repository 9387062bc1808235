#include <program/recipe.hpp>

#include <weft/recipes/ppo.hpp>

int program::run_ppo(request const& asked) { return run_recipe<weft::rl::ppo<weft::rl::policy_losses>, weft::rl::policy_losses>(asked); }
