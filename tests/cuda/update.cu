// update.cu — the graphs of update.hpp on a GPU.
#include <weft/engine/cuda.hpp>
#include "update.hpp"

namespace lab {
struct gpu::hidden {
  cuda_device device;
};
gpu::gpu(bool eager) : at_{new hidden{cuda_device{cuda_options{.eager = eager, .plans = "/tmp/weft-plans.txt"}}}} {}
gpu::~gpu() = default;
std::unique_ptr<any_step> gpu::make(kind what, shape const& s) { return lab::make(cuda{at_->device}, what, s); }
void gpu::write(void* to, void const* from, size_t bytes) { kernels::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "write"); }
void gpu::read(void* to, void const* from, size_t bytes) { kernels::check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "read"); }
size_t gpu::captured() const { return at_->device.graphs().captured; }
size_t gpu::launched() const { return at_->device.graphs().launched; }
size_t gpu::allocations() const { return at_->device.counts.allocations; }
}  // namespace lab
