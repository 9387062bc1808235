// gemm_reference.cuh — what a product must equal: m16n8k16 tensor-core steps over k = 0, 16, ..., one f32 accumulator an output.
#pragma once
#include <weft/kernels/cuda/context.cuh>

namespace weft::kernels::detail {
inline constexpr size_t pattern_rows = 64;  // rows of a that differ in a check; row i is row i % 64

struct matrix_view {
  bf16 const* data;
  size_t row, k;  // distance of rows, and of neighbours along k
};
__device__ inline u32 two_along_k(matrix_view x, size_t i, size_t p, size_t rows, size_t k) {
  u32 const low = i < rows && p < k ? x.data[i * x.row + p * x.k].bits : 0,
            high = i < rows && p + 1 < k ? x.data[i * x.row + (p + 1) * x.k].bits : 0;
  return low | high << 16;
}
// One warp an output tile of 16 x 8; blockIdx.y: rows, blockIdx.x * 4 + warp: columns.
static __global__ void reference_product(size_t n, size_t k, matrix_view a, matrix_view b, f32* c /*[64, n]*/) {
  size_t const j0 = 8 * (size_t{blockIdx.x} * 4 + threadIdx.x / 32), i0 = 16 * blockIdx.y, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  if (j0 >= n) return;
  f32 sum[4] = {};
  for (size_t p = 2 * t; p < k + 2 * t; p += 16) {
    u32 const a0 = two_along_k(a, i0 + g, p, pattern_rows, k), a1 = two_along_k(a, i0 + g + 8, p, pattern_rows, k),
              a2 = two_along_k(a, i0 + g, p + 8, pattern_rows, k), a3 = two_along_k(a, i0 + g + 8, p + 8, pattern_rows, k);
    u32 const b0 = two_along_k(b, j0 + g, p, n, k), b1 = two_along_k(b, j0 + g, p + 8, n, k);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  for (size_t e = 0; e < 4; ++e)
    if (size_t const j = j0 + 2 * t + e % 2; j < n) c[(i0 + g + e / 2 * 8) * n + j] = sum[e];
}
// numbers in (-1, 1), a function of (i % period, p)
static __global__ void random_matrix(size_t rows, size_t k, size_t row_distance, size_t k_distance, size_t period, u32 salt, bf16* to) {
  for (size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < rows * k; at += size_t{gridDim.x} * blockDim.x) {
    size_t const i = at / k, p = at % k;
    u32 h = static_cast<u32>(i % period) * 0x9E3779B9u ^ static_cast<u32>(p) * 0x85EBCA6Bu ^ salt;
    h = (h ^ h >> 16) * 0x7FEB352Du, h = (h ^ h >> 15) * 0x846CA68Bu, h ^= h >> 16;
    to[i * row_distance + p * k_distance] = to_bf16(static_cast<f32>(static_cast<i32>(h)) * 0x1p-31f);
  }
}
template <class C>
__global__ void count_unequal(size_t m, size_t n, C const* c /*[m, n]*/, f32 const* reference /*[64, n]*/, u32* unequal) {
  u32 mine = 0;
  for (size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < m * n; at += size_t{gridDim.x} * blockDim.x) {
    f32 const want = reference[at / n % pattern_rows * n + at % n];
    if constexpr (sizeof(C) == sizeof(f32)) mine += __float_as_uint(c[at]) != __float_as_uint(want);
    else mine += c[at].bits != to_bf16(want).bits;
  }
  if (mine) atomicAdd(unequal, mine);
}
}  // namespace weft::kernels::detail
