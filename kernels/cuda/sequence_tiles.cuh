// sequence_tiles.cuh — which part of a packed batch a block of threads works on. Lengths are known on the device only, so the grid is as
// large as the GPU, and every block takes the next tile from a counter in device memory when it is done with one. What a tile computes does
// not depend on who takes it.
#pragma once
#include <weft/kernels/cuda/context.cuh>
#include <weft/kernels/cuda/instructions.cuh>

namespace weft::kernels::cuda {
struct sequence_tile {
  int first, length;  // the sequence: its first token in the batch, its tokens
  int block, head;    // rows [block * size, ...) of the sequence
};

class sequence_tiles {
  i32* counter_;                   // 0 at the start of the kernel
  int* slot_;                      // in shared memory: the number of the block's tile
  int upcoming_;                   // thread 0: the number after this one
  int sequence_ = 0, before_ = 0;  // tiles of earlier sequences

 public:
  __device__ sequence_tiles(i32* counter, int* slot) : counter_(counter), slot_(slot), upcoming_(static_cast<int>(blockIdx.x)) {}
  // The block's next tile; all threads have then left the one before. Every warp looks for itself, 32 sequences at a time.
  // longest_first: the last blocks of a sequence come first.
  template <int size>
  __device__ bool next(int sequences, i32 const* cu_seqlens /*[sequences + 1]*/, int heads, bool longest_first, sequence_tile& tile) {
    int const lane = static_cast<int>(lane_id());
    __syncthreads();
    if (threadIdx.x == 0) *slot_ = upcoming_;
    __syncthreads();
    int const task = *slot_;
    if (threadIdx.x == 0) upcoming_ = static_cast<int>(gridDim.x) + atomicAdd(counter_, 1);
    for (; sequence_ < sequences; sequence_ += 32) {
      int const s = sequence_ + lane, first = s < sequences ? cu_seqlens[s] : 0, length = s < sequences ? cu_seqlens[s + 1] - first : 0;
      int const blocks = (length + size - 1) / size;
      int through = blocks * heads;  // tiles up to and with this lane's sequence
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        int const x = __shfl_up_sync(0xffffffffu, through, step);
        if (lane >= step) through += x;
      }
      u32 const beyond = __ballot_sync(0xffffffffu, task < before_ + through);
      if (beyond) {
        int const owner = __ffs(static_cast<int>(beyond)) - 1;
        int const local = task - before_ - (__shfl_sync(0xffffffffu, through, owner) - __shfl_sync(0xffffffffu, blocks, owner) * heads);
        tile.first = __shfl_sync(0xffffffffu, first, owner);
        tile.length = __shfl_sync(0xffffffffu, length, owner);
        int const count = __shfl_sync(0xffffffffu, blocks, owner);
        tile.block = longest_first ? count - 1 - local / heads : local / heads;
        tile.head = local % heads;
        return true;
      }
      before_ += __shfl_sync(0xffffffffu, through, 31);
    }
    return false;
  }
};

inline bool has_shared_memory(int bytes) { return this_card().shared_memory >= bytes; }  // for a block
// Blocks of `threads` threads and `shared` bytes for a kernel that walks its tiles.
template <class Kernel> unsigned resident_blocks(Kernel kernel, int threads, size_t shared) {
  int each = 0;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)), "shared memory");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared), "occupancy");
  if (!each) throw std::runtime_error("attention: this GPU has too little shared memory for a block of keys");
  return static_cast<unsigned>(each * this_card().processors);
}
}  // namespace weft::kernels::cuda
