// paged.cuh — keys and values in pages, on a GPU; see paged.hpp. A row whose sequence or position is below 0 stands for no token.
//
// Segments of 256 keys are computed apart and merged in order, so the bits depend neither on who computes them (paged_walk.cuh, for few
// rows paged_spread.cuh) nor on the batch, and are those of attention().
#pragma once
#include <type_traits>
#include <weft/kernels/cuda/attention.cuh>
#include <weft/kernels/cuda/f8.cuh>
#include <weft/kernels/cuda/paged_spread.cuh>
#include <weft/kernels/cuda/paged_walk.cuh>

namespace weft::kernels {
namespace cuda {
inline __device__ void write_page_row(int head_dim, bf16 const* x, bf16* row) {
  for (int i = static_cast<int>(lane_id()) * 4; i < head_dim; i += 128)
    *reinterpret_cast<uint2*>(row + i) = *reinterpret_cast<uint2 const*>(x + i);
}
inline __device__ void write_page_row(int head_dim, bf16 const* x, f8e4m3* row) {
  float most = 0x1p-126f;
  bool finite = true;
  for (int i = static_cast<int>(lane_id()); i < head_dim; i += 32) {
    float const size = fabsf(to_f32(x[i]));
    finite = finite && size < INFINITY;
    most = fmaxf(most, size);
  }
#pragma unroll
  for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  float const scale = __all_sync(0xffffffffu, finite) ? __fdiv_rn(most, 448.0f) : __uint_as_float(0x7fc00000u);
  for (int i = static_cast<int>(lane_id()); i < head_dim; i += 32) row[i] = detail::f32_to_f8(__fdiv_rn(to_f32(x[i]), scale));
  if (lane_id() == 0) *reinterpret_cast<float*>(row + head_dim) = scale;
}
// A warp a row, key/value head and side.
template <class Kv> __global__ void __launch_bounds__(256)
    paged_write_kernel(paged_pool<Kv> pool, size_t layer, size_t rows, i32 const* sequence, i32 const* position, bf16 const* k,
                       bf16 const* v) {
  size_t const at = blockIdx.x * size_t{8} + threadIdx.x / 32, side = at % 2, head = at / 2 % pool.kv_heads, row = at / 2 / pool.kv_heads;
  if (row >= rows || sequence[row] < 0 || position[row] < 0) return;
  size_t const p = static_cast<size_t>(position[row]),
               page = static_cast<size_t>(pool.table[static_cast<size_t>(sequence[row]) * pool.table_width + p / page_tokens]);
  size_t const to = (((page * pool.layers + layer) * 2 + side) * pool.kv_heads + head) * page_tokens + p % page_tokens;
  write_page_row(static_cast<int>(pool.head_dim), (side ? v : k) + (row * pool.kv_heads + head) * pool.head_dim,
                 pool.data + to * page_row_elements<Kv>(pool.head_dim));
}
}  // namespace cuda

template <class Kv> void paged_write(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                     i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/,
                                     bf16 const* k /*[rows, kv_heads, head_dim]*/, bf16 const* v) {
  if (!rows) return;
  cuda::paged_write_kernel<<<static_cast<unsigned>((rows * pool.kv_heads * 2 + 7) / 8), 256, 0, on.stream>>>(pool, layer, rows, sequence,
                                                                                                             position, k, v);
  check_launch("paged_write");
}
namespace cuda {
// f.operator()<D, whole>() for a pool's heads
template <class Kv, class F> auto for_head_dim(size_t head_dim, F const& f) {
  if (head_dim % 8 || head_dim > 128)
    throw std::runtime_error("attention_paged: head_dim must be a multiple of 8 up to 128 on a GPU, not " + std::to_string(head_dim));
  if (std::is_same_v<Kv, bf16> || head_dim % 64 == 0)  // rows of bf16 are filled up on their way
    return head_dim <= 64 ? f.template operator()<64, true>() : f.template operator()<128, true>();
  if constexpr (std::is_same_v<Kv, f8e4m3>)
    return head_dim <= 64 ? f.template operator()<64, false>() : f.template operator()<128, false>();
  return f.template operator()<128, true>();
}
template <class Kv> paged_input<Kv> paged_input_of(paged_pool<Kv> const& pool, size_t layer, size_t rows, i32 const* sequence,
                                                   i32 const* position, size_t heads, f32 scale, bf16 const* q, bf16* out,
                                                   page_groups groups) {
  size_t const group = heads / pool.kv_heads;
  return {pool,
          layer,
          static_cast<int>(rows),
          static_cast<int>(heads),
          sequence,
          position,
          scale,
          q,
          out,
          static_cast<int>((group + cuda::tile_rows - 1) / cuda::tile_rows),
          groups};
}
}  // namespace cuda

template <class Kv> void attention_paged(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                         i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/, size_t heads, f32 scale,
                                         bf16 const* q /*[rows, heads, head_dim]*/, bf16* out /*[rows, heads, head_dim]*/,
                                         page_groups groups = {}) {
  if (!rows) return;
  auto const in = cuda::paged_input_of(pool, layer, rows, sequence, position, heads, scale, q, out, groups);
  cuda::for_head_dim<Kv>(pool.head_dim, [&]<int D, bool whole>() {
    if (groups.members || !cuda::launch_paged_spread<Kv, D, whole>(on, in)) cuda::launch_paged_walk<Kv, D, whole>(on, in);
  });
}
// The same from a layer's projections, whose newest keys and values also go into their pages: for a step of a few sequences, a row each.
// sequence, position and the page table must not be written by a kernel right in front of the projections. False, and nothing done, where
// rows are not that few.
template <class Kv> bool attention_projected(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows, projection const& p,
                                             i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/, f32 scale, bf16* out) {
  auto const in = cuda::paged_input_of<Kv>(pool, layer, rows, sequence, position, p.heads, scale, nullptr, out, {});
  return cuda::for_head_dim<Kv>(pool.head_dim, [&]<int D, bool whole>() { return cuda::launch_paged_spread<Kv, D, whole>(on, in, p); });
}
}  // namespace weft::kernels
