// engine/cpu_instances.hpp — the large functions of a run on the CPU in float, compiled once. A program of several files includes this
// where its recipes are, and one file defines WEFT_INSTANTIATE before it. A program of one file does not need it.
#pragma once
#include <weft/engine/cpu.hpp>
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/head.hpp>
#include <weft/model/backward.hpp>
#include <weft/model/forward.hpp>
#include <weft/rollout/generate.hpp>

#ifdef WEFT_INSTANTIATE
#define WEFT_INSTANCE template
#else
#define WEFT_INSTANCE extern template
#endif

namespace weft {
namespace kernels {
WEFT_INSTANCE void gemm_nt(cpu_context&, size_t, size_t, size_t, f32 const*, size_t, f32 const*, size_t, f32*, size_t, bool);
WEFT_INSTANCE void gemm_nn(cpu_context&, size_t, size_t, size_t, f32 const*, size_t, f32 const*, size_t, f32*, size_t, bool);
WEFT_INSTANCE void gemm_tn(cpu_context&, size_t, size_t, size_t, f32 const*, size_t, f32 const*, size_t, f32*, size_t, bool);
WEFT_INSTANCE void head_log_probs(cpu_context&, size_t, size_t, size_t, f32 const*, f32 const*, i32 const*, f32 const*, size_t, f32*, f32*,
                                  f32*);
WEFT_INSTANCE void head_loss(cpu_context&, size_t, size_t, size_t, f32 const*, f32 const*, i32 const*, f32 const*, size_t, f32*,
                             row_loss<f32>, f32*, f32*, f32*, f32*);
WEFT_INSTANCE void adamw(cpu_context&, size_t, f32*, f32*, f32*, f32 const*, adamw_step const&, f32);
WEFT_INSTANCE double sum_of_squares(cpu_context&, size_t, f32 const*);
}  // namespace kernels
namespace model {
WEFT_INSTANCE void forward(cpu&, config const&, bool, f32 const*, f32 const*, batch_view const&, f32*, f32*);
WEFT_INSTANCE void backward(cpu&, config const&, bool, f32 const*, f32 const*, batch_view const&, f32*, f32 const*, f32*);
}  // namespace model
namespace rollout {
WEFT_INSTANCE counters generate(cpu&, policy<f32> const&, request<f32> const&, settings const&, outputs<f32> const&,
                                workspace<f32, f32> const&);
WEFT_INSTANCE counters generate(cpu&, policy<f32> const&, request<f32> const&, settings const&, outputs<f32> const&,
                                workspace<f32, f8e4m3> const&);
}  // namespace rollout
}  // namespace weft
#undef WEFT_INSTANCE
