#include <program/gpu_recipes.hpp>

#include <weft/recipes/ppo.hpp>
#include <weft/recipes/sft.hpp>

namespace program {
using namespace weft::rl;
bound_on_gpu gpu_ppo(weft::cuda const& on, weft::detail::givens const& given) { return bind_recipe<ppo<policy_losses>>(on, given); }
bound_on_gpu gpu_ppo_with_reference(weft::cuda const& on, weft::detail::givens const& given) {
  return bind_recipe<ppo_with_reference<policy_losses>>(on, given);
}
bound_on_gpu gpu_sft(weft::cuda const& on, weft::detail::givens const& given) { return bind_recipe<sft<>>(on, given); }
}  // namespace program
