// stages/optimizer.hpp — one AdamW step on the flat parameters: global-norm clip, and nothing at all if the gradient is not finite.
#pragma once
#include <cmath>
#include <weft/kernels/adamw.hpp>
#include <weft/optim/clip.hpp>
#include "update.hpp"

namespace weft::rl {
struct optimizer_settings {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, clip_grad = 1;
};  // clip_grad 0: no clip
template <class M> struct optimizer : optimizer_settings {};

template <class M> struct adamw_update {
  template <class E> static void run(E& on, in<gradients<M>> g, in<tallies<M>> count, in<learning_rate<M>> lr, setting<optimizer<M>> o,
                                     next<weights<M>> w, next<moments<M>> m, next<updates_done<M>> done, out<gradient_norms<M>> norm) {
    double const size = std::sqrt(kernels::sum_of_squares(on, g.count(), g.data));
    norm.flat(0) = f32(size);
    if (count(0) == 0 || !(size - size == 0)) return;  // nothing counted, or NaN or Inf: the trainer counts it and stops after three
    ++done();
    kernels::adamw(on, w.count(), w.data, m.data, m.data + w.count(), g.data,
                   {double(lr()), o->beta1, o->beta2, o->eps, o->weight_decay, done()}, f32(optim::clip_coefficient(size, o->clip_grad)));
  }
};
}  // namespace weft::rl
