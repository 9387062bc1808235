// gpu_recipes.hpp — the recipes that are compiled for a GPU, each in a file gpu_NAME.cu; gpu.cu is the module that hands them out.
#pragma once
#include <weft/engine/cuda.hpp>

#include <weft/recipes/validate.hpp>

namespace program {
using bound_on_gpu = std::unique_ptr<weft::any_step>;
template <class Recipe> bound_on_gpu bind_recipe(weft::cuda const& on, weft::detail::givens const& given) {
  return weft::make_step_from<Recipe, weft::rl::validate>(on, given);
}
bound_on_gpu gpu_sft(weft::cuda const&, weft::detail::givens const&);
bound_on_gpu gpu_grpo(weft::cuda const&, weft::detail::givens const&);
bound_on_gpu gpu_grpo_fp8(weft::cuda const&, weft::detail::givens const&);
bound_on_gpu gpu_grpo_with_reference(weft::cuda const&, weft::detail::givens const&);
bound_on_gpu gpu_ppo(weft::cuda const&, weft::detail::givens const&);
bound_on_gpu gpu_ppo_with_reference(weft::cuda const&, weft::detail::givens const&);
}  // namespace program
