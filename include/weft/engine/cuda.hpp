// engine/cuda.hpp — the executor of one GPU: bind<grpo<>>(weft::cuda{device}, ...). Include it before the headers of models, stages and
// recipes: these take the kernels that they have seen.
//
//   weft::cuda_device device{{.plans = "plans.txt"}};
//   auto step = weft::bind<weft::rl::grpo<>>(weft::cuda{device}, ...);
//
// What the host fed and keeps is seen through view_of as on the CPU. State lies on the device: view_of gives its device address, and
// write and read copy it.
#pragma once
#ifdef WEFT_MODEL_FORWARD
#error "include <weft/engine/cuda.hpp> before the headers of models, stages and recipes"
#endif
#include <weft/kernels/cuda/adamw.cuh>
#include <weft/kernels/cuda/assemble.cuh>
#include <weft/kernels/cuda/attention.cuh>
#include <weft/kernels/cuda/embedding.cuh>
#include <weft/kernels/cuda/head.cuh>
#include <weft/kernels/cuda/paged.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/kernels/cuda/rope.cuh>
#include <weft/kernels/cuda/sampling.cuh>
#include <weft/kernels/cuda/score.cuh>
#include <weft/kernels/cuda/swiglu.cuh>
#include <weft/engine/cpu.hpp>
#include <weft/engine/cuda/generate.hpp>
#include <weft/engine/cuda/lowered.hpp>
#include <weft/step.hpp>

namespace weft {
namespace detail {
static __global__ void checksum_kernel(u64 const* words, size_t count, u64* sum) {
  u64 mine = 0;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    mine += weighed(words[i], i);
  for (int d = 16; d; d /= 2) mine += __shfl_down_sync(~0u, mine, static_cast<unsigned>(d));
  if (threadIdx.x % 32 == 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(mine));
}
}  // namespace detail
struct cuda : kernels::cuda_context {
  using host = cpu;
  using compute = bf16;
  double* seconds = nullptr;  // per node of the plan: adds up the time in stages

  explicit cuda(cuda_device& d) : cuda_context{d.context()}, device{&d} {}
  void* alloc(size_t n, bool on_host) { return device->allocate(n, on_host); }
  void free(void* p, bool on_host) { device->free(p, on_host); }
  void prepare(detail::program& p) { programs_.push_back(std::make_shared<detail::lowered>(p, *device)); }
  void forget(detail::program const& p) {
    std::erase_if(programs_, [&](auto const& it) { return &it->of() == &p; });
  }
  void write(void* to, void const* from, size_t bytes) {
    if (bytes) kernels::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "write");
  }
  void read(void* to, void const* from, size_t bytes) {
    if (bytes) kernels::check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "read");
  }
  u64 checksum(void const* data, size_t bytes) {  // as detail::checksum_of; bytes: a multiple of 8
    auto* const sum = static_cast<u64*>(scratch);
    kernels::check(cudaMemsetAsync(sum, 0, sizeof *sum, stream), "checksum");
    detail::checksum_kernel<<<1024, 256, 0, stream>>>(static_cast<u64 const*>(data), bytes / 8, sum);
    u64 found = 0;
    kernels::check(cudaMemcpyAsync(&found, sum, sizeof found, cudaMemcpyDeviceToHost, stream), "checksum");
    kernels::check(cudaStreamSynchronize(stream), "checksum");
    return found + bytes;
  }
  void run(detail::program const& p) {
    for (auto const& it : programs_)
      if (&it->of() == &p) it->run(this, *this, seconds);
  }
  cuda_device* device;

 private:
  std::vector<std::shared_ptr<detail::lowered>> programs_;
};
}  // namespace weft
