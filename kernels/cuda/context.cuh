// context.cuh — where a kernel runs on a GPU: a stream, and memory that the kernels of this stream use one after another.
//
// Kernels allocate nothing, never synchronise and may be captured into a graph. Activations and weights are bf16, sums, statistics and
// gradients of weights f32. An id or index below 0 stands for no token: then a captured graph of fixed size serves any number of tokens.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdexcept>
#include <string>
#include <weft/element.hpp>

namespace weft::kernels {
class gemm_plans;   // gemm.cuh
class graph_cache;  // replay.cuh

struct cuda_context {
  cudaStream_t stream = nullptr;
  void* scratch = nullptr;  // partial sums; aligned to 256 bytes
  size_t scratch_bytes = 0;
  gemm_plans* gemms = nullptr;    // matrix products need them
  u64 size_class = 0;             // of the work at hand, if who prepared it said so: see assemble.cuh
  graph_cache* graphs = nullptr;  // null: nothing is captured, everything is enqueued every time
};

inline void check(cudaError_t e, char const* what) {
  if (e != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(e));
}
inline void check_launch(char const* what) { check(cudaGetLastError(), what); }
struct card {                             // of the device that is current when it is first asked for
  int processors = 0, shared_memory = 0;  // bytes of it that a block may have
};
inline card const& this_card() {
  static card const here = [] {
    int device = 0;
    card c;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&c.processors, cudaDevAttrMultiProcessorCount, device), "processors");
    check(cudaDeviceGetAttribute(&c.shared_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
    return c;
  }();
  return here;
}
template <class X> X* scratch_of(cuda_context& on, size_t count, char const* what) {
  if (count * sizeof(X) > on.scratch_bytes)
    throw std::runtime_error(std::string(what) + ": needs " + std::to_string(count * sizeof(X)) + " bytes of scratch, the context has " +
                             std::to_string(on.scratch_bytes));
  return static_cast<X*>(on.scratch);
}

__device__ inline f32 to_f32(bf16 x) { return __uint_as_float(static_cast<u32>(x.bits) << 16); }
__device__ inline f32 to_f32(f32 x) { return x; }
__device__ inline bf16 to_bf16(f32 x) { return {__bfloat16_as_ushort(__float2bfloat16_rn(x))}; }
}  // namespace weft::kernels
