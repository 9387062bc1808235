#include <program/recipe.hpp>

#include <weft/recipes/clip_cov.hpp>

int program::run_clip_cov(request const& asked) {
  return run_recipe<weft::rl::clip_cov<weft::rl::selecting_losses>, weft::rl::selecting_losses>(asked);
}
