#include <program/recipe.hpp>

#include <weft/recipes/clip_cov.hpp>

int program::run_clip_cov_with_reference(request const& asked) {
  return run_recipe<weft::rl::clip_cov_with_reference<weft::rl::selecting_losses>, weft::rl::selecting_losses>(asked);
}
