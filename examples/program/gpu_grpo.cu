#include <program/gpu_recipes.hpp>

#include <weft/recipes/grpo.hpp>

namespace program {
using namespace weft::rl;
bound_on_gpu gpu_grpo(weft::cuda const& on, weft::detail::givens const& given) { return bind_recipe<grpo<policy_losses>>(on, given); }
bound_on_gpu gpu_grpo_fp8(weft::cuda const& on, weft::detail::givens const& given) {
  return bind_recipe<grpo<policy_losses, weft::local, weft::local, weft::f8e4m3>>(on, given);
}
bound_on_gpu gpu_grpo_with_reference(weft::cuda const& on, weft::detail::givens const& given) {
  return bind_recipe<grpo_with_reference<policy_losses>>(on, given);
}
}  // namespace program
