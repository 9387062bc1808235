// f8.cuh — f8e4m3 to and from f32 on the device, with the bits of cpu/f8.hpp, and whole rows with a scale each.
#pragma once
#include <cuda_fp8.h>
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
// To nearest, ties to even; beyond 448 becomes 448, NaN stays NaN.
__device__ inline f8e4m3 f32_to_f8(f32 x) {
  if (x != x) return {static_cast<std::uint8_t>((__float_as_uint(x) >> 24 & 0x80) | 0x7f)};
  return {static_cast<std::uint8_t>(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3))};
}
__device__ inline f32 f8_to_f32(f8e4m3 x) {
  u32 const size = x.bits & 0x7fu, bits = (static_cast<u32>(x.bits & 0x80u) << 24) | (size == 0x7f ? 0x7fc00000u : size << 20);
  return __fmul_rn(__uint_as_float(bits), 0x1p120f);
}
// One warp a row: scale = max(amax, smallest normal) / 448, NaN if the row has Inf or NaN.
static __global__ void __launch_bounds__(256) rows_to_f8(size_t rows, size_t width, bf16 const* x, f8e4m3* out, f32* scale) {
  size_t const row = size_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  f32 most = 0;
  bool finite = true;
  for (size_t i = threadIdx.x % 32; i < width; i += 32) {
    f32 const size = fabsf(to_f32(x[row * width + i]));
    finite = finite && size <= 3.4e38f;
    most = fmaxf(most, size);
  }
  finite = __all_sync(~0u, finite);
  f32 const s = finite ? __fdiv_rn(fmaxf(warp_max(most), 0x1p-126f), 448.0f) : __int_as_float(0x7fc00000);
  if (threadIdx.x % 32 == 0) scale[row] = s;
  for (size_t i = threadIdx.x % 32; i < width; i += 32) out[row * width + i] = f32_to_f8(__fdiv_rn(to_f32(x[row * width + i]), s));
}
static __global__ void rows_from_f8(size_t count, size_t width, f8e4m3 const* x, f32 const* scale, bf16* out) {
  size_t const i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = to_bf16(__fmul_rn(f8_to_f32(x[i]), scale[i / width]));
}
}  // namespace detail

inline void to_f8(cuda_context& on, size_t rows, size_t width, bf16 const* x /*[rows, width]*/, f8e4m3* out /*[rows, width]*/,
                  f32* scale /*[rows]*/) {
  if (!rows) return;
  detail::rows_to_f8<<<blocks_of(rows, 8), 256, 0, on.stream>>>(rows, width, x, out, scale);
  check_launch("to_f8");
}
inline void from_f8(cuda_context& on, size_t rows, size_t width, f8e4m3 const* x /*[rows, width]*/, f32 const* scale /*[rows]*/,
                    bf16* out /*[rows, width]*/) {
  if (!rows || !width) return;
  detail::rows_from_f8<<<blocks_of(rows * width, 256), 256, 0, on.stream>>>(rows * width, width, x, scale, out);
  check_launch("from_f8");
}
}  // namespace weft::kernels
