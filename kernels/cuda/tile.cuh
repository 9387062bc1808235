// tile.cuh — bf16 tiles in shared memory, and the two products of attention over them. Both run on wgmma in code for sm_90a and on
// mma.sync elsewhere, with the same bits.
//
// A tile of `rows` rows and D columns is stored as D / 64 halves of [rows][64]; in a row of 128 bytes the 16-byte chunk c lies at place
// c ^ (row % 8), which is wgmma's 128-byte swizzle and free of bank conflicts. A tile starts at a multiple of 1024 bytes.
#pragma once
#include <weft/kernels/cuda/warpgroup.cuh>

namespace weft::kernels::cuda {
template <int rows, int D> struct tile {
  static constexpr int bytes = rows * D * 2, half = rows * 128;
  u32 address;
  __device__ u32 chunk(int row, int c) const {
    return address + static_cast<u32>((c >> 3) * half + row * 128 + (((c & 7) ^ (row & 7)) << 4));
  }
};

// Rows [0, count) of x [., head_dim] at distance `stride` -> the tile, in the background; zeros beyond count and head_dim.
template <int threads, int rows, int D> __device__ void copy_tile(tile<rows, D> to, bf16 const* x, size_t stride, int count, int head_dim) {
  constexpr int chunks = D / 8, step = threads / chunks;  // rows that the threads copy at a time
  int const row = static_cast<int>(threadIdx.x) / chunks, c = static_cast<int>(threadIdx.x) % chunks;
  int const left = c * 8 < head_dim ? count - row : 0;
  u32 const place = to.chunk(row, c);
  bf16 const* from = x + static_cast<size_t>(row) * stride + c * 8;
#pragma unroll
  for (int i = 0; i < rows; i += step, from += step * stride) copy_async(place + static_cast<u32>(i * 128), i < left ? from : x, i < left);
}

// c[rows of this warp, 64] += a b^T: a's rows from `row` (of the warpgroup: its 64 rows; each warp takes its 16), b of 64 rows
template <int rows, int D> __device__ void product_nt(float (&c)[8][4], tile<rows, D> a, int row, tile<64, D> b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
    multiply_add_group(c, descriptor(a.address + static_cast<u32>((k >> 2) * a.half + row * 128 + (k & 3) * 32), 16),
                       descriptor(b.address + static_cast<u32>((k >> 2) * b.half + (k & 3) * 32), 16));
#else
  int const lane = static_cast<int>(lane_id()), at = row + static_cast<int>(threadIdx.x / 32 % 4) * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    u32 x[4];
    load_matrices(x, a.chunk(at, 2 * k + lane / 16));
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      u32 y[4];
      load_matrices(y, b.chunk(n * 8 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
      multiply_add(c[n], x, y[0], y[1]);
      multiply_add(c[n + 1], x, y[2], y[3]);
    }
  }
#endif
}
// c[rows of this warp, D] += p b: p [., 64] as left fragments in registers, b of 64 rows
template <int D> __device__ void product_nn(float (&c)[D / 8][4], u32 const (&p)[4][4], tile<64, D> b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply_add_group(c, p[k], descriptor(b.address + static_cast<u32>(k * 16 * 128), b.half));
#else
  int const lane = static_cast<int>(lane_id());
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      u32 y[4];
      load_matrices_transposed(y, b.chunk(k * 16 + lane % 16, n + lane / 16));
      multiply_add(c[n], p[k], y[0], y[1]);
      multiply_add(c[n + 1], p[k], y[2], y[3]);
    }
#endif
}
// the columns of c as the left operand of a product
inline __device__ void to_left(float const (&c)[8][4], u32 (&p)[4][4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    p[k][0] = pack(c[2 * k][0], c[2 * k][1]);
    p[k][1] = pack(c[2 * k][2], c[2 * k][3]);
    p[k][2] = pack(c[2 * k + 1][0], c[2 * k + 1][1]);
    p[k][3] = pack(c[2 * k + 1][2], c[2 * k + 1][3]);
  }
}
template <int n> __device__ void clear(float (&c)[n][4]) {
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) c[i][j] = 0;
}
}  // namespace weft::kernels::cuda
