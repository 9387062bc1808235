// engine/cuda/device.hpp — one GPU of a process: its stream, the plans of its products, its captured graphs, and what it was asked to do.
// Errors: io::input_error, one line, where there is no GPU, driver or memory that would do.
#pragma once
#include <weft/io/input_error.hpp>
#include <weft/kernels/cuda/gemm.cuh>
#include <weft/kernels/cuda/replay.cuh>

namespace weft {
struct cuda_options {
  int device = 0;
  bool eager = false;                 // nothing is captured: for debugging, with the same bits
  std::string plans;                  // file of the plans of products, or empty: searched anew in every run
  size_t scratch = size_t{64} << 20;  // bytes of partial sums of kernels
};
struct cuda_counts {
  size_t allocations = 0, bytes = 0;   // on the device
  size_t stages = 0, host_stages = 0;  // run since the start
  size_t uploads = 0, downloads = 0;   // of buffers between host and device
  size_t waits = 0;                    // of the host for the device
};

class cuda_device {
 public:
  explicit cuda_device(cuda_options const& o = {}) {
    int count = 0;
    cudaError_t const e = cudaGetDeviceCount(&count);
    if (e == cudaErrorInsufficientDriver)
      throw io::input_error("no CUDA driver, or one that is too old for this program (" + std::string(cudaGetErrorString(e)) +
                            "): install a newer one, or run with --device cpu");
    if (e != cudaSuccess || count == 0)
      throw io::input_error("no CUDA device was found (" + std::string(e == cudaSuccess ? "none is there" : cudaGetErrorString(e)) +
                            "): look at nvidia-smi and CUDA_VISIBLE_DEVICES, or run with --device cpu");
    if (o.device < 0 || o.device >= count)
      throw io::input_error("CUDA device " + std::to_string(o.device) + " was asked for, of " + std::to_string(count));
    kernels::check(cudaSetDevice(o.device), "set device");
    kernels::check(cudaGetDeviceProperties(&properties_, o.device), "device properties");
    if (properties_.major < 8)
      throw io::input_error(std::string(properties_.name) + " has compute capability " + std::to_string(properties_.major) + "." +
                            std::to_string(properties_.minor) + "; 8.0 or more is needed (bf16 tensor cores)");
    kernels::check(cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking), "stream");
    kernels::check(cudaMalloc(&context_.scratch, o.scratch), "scratch");
    context_.scratch_bytes = o.scratch;
    plans_.reset(new kernels::gemm_plans(o.plans));
    context_.gemms = plans_.get();
    if (!o.eager) context_.graphs = &graphs_;
  }
  cuda_device(cuda_device const&) = delete;
  cuda_device& operator=(cuda_device const&) = delete;
  ~cuda_device() {
    cudaStreamSynchronize(context_.stream);
    cudaFree(context_.scratch);
    cudaStreamDestroy(context_.stream);
  }
  kernels::cuda_context const& context() const { return context_; }
  cudaDeviceProp const& properties() const { return properties_; }
  kernels::graph_cache const& graphs() const { return graphs_; }
  kernels::gemm_plans& plans() { return *plans_; }

  void* allocate(size_t bytes, bool on_host) {
    void* data = nullptr;
    if (bytes == 0) return data;
    if (on_host) {
      kernels::check(cudaMallocHost(&data, bytes), "pinned memory of the host");
      return data;
    }
    size_t free = 0, total = 0;
    kernels::check(cudaMemGetInfo(&free, &total), "free memory");
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
      cudaGetLastError();
      throw io::input_error("this run needs " + std::to_string(bytes) + " bytes on the GPU, where " + std::to_string(free) + " of " +
                            std::to_string(total) +
                            " are free. Take fewer tokens a micro-batch, a smaller KV pool, or enable_gradient_checkpointing");
    }
    ++counts.allocations, counts.bytes += bytes;
    return data;
  }
  void free(void* data, bool on_host) { on_host ? cudaFreeHost(data) : cudaFree(data); }
  cuda_counts counts;

 private:
  cudaDeviceProp properties_{};
  kernels::cuda_context context_;
  std::unique_ptr<kernels::gemm_plans> plans_;
  kernels::graph_cache graphs_;
};
}  // namespace weft
