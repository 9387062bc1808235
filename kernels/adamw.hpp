// adamw.hpp — AdamW as torch.optim.AdamW computes it (Loshchilov and Hutter 2019), over a flat range of parameters; decay acts on all of
// them.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>
#include <weft/kernels/moments.hpp>

namespace weft::kernels {
struct adamw_step {
  double lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  i32 step = 1;  // the first step is 1
};
// gradient_scale multiplies g first (a clip, or a mean)
template <class T> void adamw(cpu_context& on, size_t n, T* w, T* m, T* v, T const* g, adamw_step const& step, T gradient_scale);
// in double, by a tree that depends on n alone
template <class T> double sum_of_squares(cpu_context& on, size_t n, T const* x);

// A whole optimizer step: clip by the global norm, then AdamW; nothing is changed where nothing counted (*counted is 0) or the norm is NaN
// or infinite. `master`: f32 weights where w is kept in fewer bits; null: w itself is stepped, and rounded stochastically where it is not
// f32. `moments`: moment_layout_of(o.moments, n). *steps counts the steps that were done; *norm: before the clip.
struct adamw_options {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, clip_grad = 1;  // clip_grad 0: no clip
  moment_format moments = moment_format::f32;
  bool masters = true;  // f32 weights are kept where the executor computes in fewer bits
};
// What gradients are multiplied by: max_norm / (norm + 1e-6), at most 1. max_norm <= 0: no clipping.
WEFT_HD inline double clip_coefficient(double norm, double max_norm) {
  double const k = max_norm > 0 ? max_norm / (norm + 1e-6) : 1;
  return k < 1 ? k : 1;
}
template <class T> void clipped_adamw(cpu_context& on, size_t n, adamw_options const& o, T const* g, i32 const* counted, f32 const* lr,
                                      T* w, T* master, void* moments, i32* steps, f32* norm);
}  // namespace weft::kernels
#include <weft/kernels/cpu/adamw.hpp>
