// adamw.hpp — AdamW as torch.optim.AdamW computes it (Loshchilov and Hutter 2019), over a flat range of parameters; decay acts on all of
// them.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
struct adamw_step {
  double lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  i32 step = 1;  // the first step is 1
};
// gradient_scale multiplies g first (a clip, or a mean)
template <class T> void adamw(cpu_context& on, size_t n, T* w, T* m, T* v, T const* g, adamw_step const& step, T gradient_scale);
// in double, by a tree that depends on n alone
template <class T> double sum_of_squares(cpu_context& on, size_t n, T const* x);
}  // namespace weft::kernels
#include <weft/kernels/cpu/adamw.hpp>
