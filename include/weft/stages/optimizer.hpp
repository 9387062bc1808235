// stages/optimizer.hpp — one AdamW step on the flat parameters: global-norm clip, and nothing at all if the gradient is not finite.
#pragma once
#include <weft/kernels/adamw.hpp>
#include "update.hpp"

namespace weft::rl {
template <class M> struct adamw_update {
  template <class E> static void run(E& on, in<gradients<M>> g, in<tallies<M>> count, in<learning_rate<M>> lr, setting<optimizer<M>> o,
                                     next<weights<M>> w, next<masters<M>> master, next<moments<M>> m, next<updates_done<M>> done,
                                     out<gradient_norms<M>> norm) {  // a step left out: the trainer counts it and stops after three
    kernels::clipped_adamw(on, w.count(), *o, g.data, count.data, lr.data, as<typename E::compute>(w),
                           master.count() ? master.data : nullptr, m.data, done.data, norm.data);
  }
};
}  // namespace weft::rl
