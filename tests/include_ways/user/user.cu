// One .cu file of a user: the graph language and a kernel of weft. Needs CUDA's libraries and no other.
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/weft.hpp>

#include <cstdio>

struct item : weft::dim {};
struct x : weft::port<weft::f32, item> {};
struct y : weft::port<weft::f32, item> {};
struct twice {
  static void run(weft::in<x> a, weft::out<y> b) {
    for (std::size_t i = 0; i < a.count(); ++i) b(i) = 2 * a(i);
  }
};
using doubling = weft::graph<weft::feed<x>, twice, weft::keep<y>>;

int main() {
  auto const sized = weft::bind<doubling>(weft::dry{}, item{8});
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("%zu bytes planned, no GPU here\n", sized.memory_map().regions[0].arena);
    return sized.memory_map().regions[0].arena == 512 ? 0 : 1;
  }
  weft::bf16* row = nullptr;
  weft::kernels::check(cudaMalloc(&row, 3 * 64 * sizeof *row), "cudaMalloc");
  weft::kernels::check(cudaMemset(row, 0, 3 * 64 * sizeof *row), "cudaMemset");
  weft::kernels::cuda_context on;
  weft::kernels::rmsnorm(on, 1, 64, row, row + 64, 1e-5f, row + 128, static_cast<float*>(nullptr));
  weft::kernels::check(cudaDeviceSynchronize(), "rmsnorm");
  std::printf("%zu bytes planned, %d GPUs\n", sized.memory_map().regions[0].arena, devices);
}
