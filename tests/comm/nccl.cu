// nccl.cu — NCCL's communicator on one GPU, a group of one: every collective leaves what it must, eager and captured.
//   nvcc -std=c++20 -Iinclude tests/comm/nccl.cu -o nccl -lnccl && ./nccl
#include <weft/comm/nccl.hpp>

#include <cstdio>
#include <vector>

using namespace weft::comm;

int main() {
  int passed = 0, failed = 0;
  auto const expect = [&](bool holds, char const* what) {
    ++(holds ? passed : failed);
    if (!holds) std::printf("failed: %s\n", what);
  };
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return std::printf("no GPU\n0 passed, 1 failed\n"), 1;
  try {
    nccl_communicator c(0, 1, nccl_communicator::unique_id(), stream, std::chrono::seconds(20));
    size_t const n = 1000;
    std::vector<float> sent(n), got(n);
    for (size_t i = 0; i < n; ++i) sent[i] = static_cast<float>(i) * 0.5f;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float)), cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, sent.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    std::span<float> const all(x, n);
    c.all_reduce(all), c.all_reduce(all, operation::max), c.reduce_scatter(all), c.all_gather(all), c.broadcast(all);
    c.all_to_all(all, std::span(y, n));
    c.barrier();
    cudaMemcpy(got.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    expect(got == sent, "every collective of one rank leaves its values");
    expect(c.collectives() == 7, "collectives are counted");

    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    c.all_reduce(all), c.all_to_all(all, std::span(y, n));
    expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "collectives are captured");
    cudaMemset(y, 0, n * sizeof(float));
    expect(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess && cudaGraphLaunch(replay, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "and replayed");
    cudaMemcpy(got.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    expect(got == sent, "with the same values");
    cudaGraphExecDestroy(replay), cudaGraphDestroy(graph);  // before the communicator that they are tied to
    cudaFree(x), cudaFree(y);
  } catch (std::exception const& e) { expect(false, e.what()); }
  try {
    nccl_communicator(0, 2, nccl_communicator::unique_id(), stream, std::chrono::milliseconds(500));
    expect(false, "a rank that does not come");
  } catch (error const& e) { expect(std::string(e.what()) == "rank 0 of 2: join number 0: no answer from all ranks in 500 ms", e.what()); }
  std::printf("%d passed, %d failed\n", passed, failed);
  std::fflush(stdout);
  std::_Exit(failed != 0);  // a group that never formed is not waited for
}
