// chain.cuh — kernels that start while the one before still ends (programmatic dependent launch, sm_90). A chained kernel may do what
// depends on nothing that was just written, such as asking for weights; then it calls wait_for_previous() before it reads or writes anything
// else. Its next_may_start() lets the one after it do the same. Elsewhere both do nothing, and launches follow one another as usual.
#pragma once
#include <weft/kernels/cuda/context.cuh>

namespace weft::kernels {
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void next_may_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// code compiled for less than sm_90 knows neither of them, nor clusters, wherever it runs
template <class Kernel> bool compiled_for_sm_90(Kernel* kernel) {
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, kernel), "attributes of a kernel");
  return a.ptxVersion >= 90;
}
// cluster: blocks of a cluster along x
template <class... P, class... A> void launch_chained(cuda_context& on, char const* what, void (*kernel)(P...), dim3 grid, dim3 block,
                                                      size_t shared, unsigned cluster, A const&... arguments) {
  static bool const chained = compiled_for_sm_90(kernel);
  cudaLaunchAttribute how[2]{};
  unsigned count = 0;
  if (chained)
    how[count].id = cudaLaunchAttributeProgrammaticStreamSerialization, how[count++].val.programmaticStreamSerializationAllowed = 1;
  if (cluster > 1) how[count].id = cudaLaunchAttributeClusterDimension, how[count++].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = grid, launch.blockDim = block, launch.dynamicSmemBytes = shared, launch.stream = on.stream;
  launch.attrs = how, launch.numAttrs = count;
  check(cudaLaunchKernelEx(&launch, kernel, static_cast<P>(arguments)...), what);
}
}  // namespace weft::kernels
