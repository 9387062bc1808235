// embedding.cuh — rows of a table by token id; the backward sums the tokens of an id in their order, without a sort.
#pragma once
#include <weft/kernels/cuda/rows.cuh>

namespace weft::kernels {
namespace detail {
// Block t: if token t is the first of its id, it adds the gradients of all tokens of this id to the row. A block that finds an earlier
// token leaves early, so frequent ids cost little.
static __global__ void __launch_bounds__(256)
    embed_backward_kernel(size_t tokens, size_t width, i32 const* ids, bf16 const* dout, f32* dtable) {
  constexpr int threads = 256;
  __shared__ i32 same[threads];
  __shared__ i32 in_warp[threads / 32];
  size_t const t = blockIdx.x;
  i32 const id = ids[t];
  if (id < 0) return;
  for (size_t first = 0; first < t; first += threads)
    if (__syncthreads_or(first + threadIdx.x < t && ids[first + threadIdx.x] == id)) return;
  f32* const row = dtable + static_cast<size_t>(id) * width;
  for (size_t first = t; first < tokens; first += threads) {
    size_t const mine = first + threadIdx.x;
    bool const hit = mine < tokens && ids[mine] == id;
    unsigned const vote = __ballot_sync(~0u, hit);
    int const warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) in_warp[warp] = __popc(vote);
    __syncthreads();
    int before = 0, count = 0;
    for (int w = 0; w < threads / 32; ++w) {
      if (w < warp) before += in_warp[w];
      count += in_warp[w];
    }
    if (hit) same[before + __popc(vote & ((1u << threadIdx.x % 32) - 1))] = static_cast<i32>(mine);
    __syncthreads();
    if (count)
      for (size_t i = threadIdx.x; i < width; i += threads) {
        f32 sum = row[i];
#pragma unroll 4
        for (int s = 0; s < count; ++s) sum += to_f32(dout[static_cast<size_t>(same[s]) * width + i]);
        row[i] = sum;
      }
    __syncthreads();
  }
}
}  // namespace detail

// zero where the id is below 0
inline void embed(cuda_context& on, size_t tokens, size_t width, i32 const* ids /*[tokens]*/, bf16 const* table /*[vocab, width]*/,
                  bf16* out /*[tokens, width]*/) {
  gather_rows(on, tokens, width, ids, table, out);
}
// dtable[ids[t]] += dout[t], t = 0, 1, ...: cutting the tokens into several calls changes no bit
inline void embed_backward(cuda_context& on, size_t tokens, size_t width, i32 const* ids, bf16 const* dout /*[tokens, width]*/,
                           f32* dtable /*[vocab, width], added*/) {
  if (!tokens || !width) return;
  detail::embed_backward_kernel<<<static_cast<unsigned>(tokens), 256, 0, on.stream>>>(tokens, width, ids, dout, dtable);
  check_launch("embed_backward");
}
}  // namespace weft::kernels
