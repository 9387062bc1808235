// elementwise.cuh — sums and copies over flat arrays and rows.
#pragma once
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
template <bool whole, class X, class Y> __global__ void add_kernel(size_t count, X const* x, Y* y) {
  size_t const i = 8 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= count) return;
  eight const a = load8<whole>(x, i, count);
  eight b = load8<whole>(y, i, count);
#pragma unroll
  for (int e = 0; e < 8; ++e) b.at[e] = __fadd_rn(b.at[e], a.at[e]);
  store8<whole>(y, i, count, b);
}
template <class T> __global__ void fill_kernel(size_t count, T value, T* y) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) y[i] = value;
}
template <bool whole> __global__ void add_bias_kernel(size_t width, size_t eights, size_t count, bf16 const* bias, bf16* y) {
  size_t const at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  size_t const row = at / eights, i = at % eights * 8;
  eight const a = load8<whole>(bias, i, width);
  eight b = load8<whole>(y + row * width, i, width);
#pragma unroll
  for (int e = 0; e < 8; ++e) b.at[e] = __fadd_rn(b.at[e], a.at[e]);
  store8<whole>(y + row * width, i, width, b);
}

inline constexpr unsigned row_slices = 128;
// part[slice] = the sum of a slice of rows, in order
static __global__ void column_slices(size_t rows, size_t width, bf16 const* dy, f32* part /*[slices, width]*/) {
  size_t const i = size_t{blockIdx.x} * blockDim.x + threadIdx.x, slices = gridDim.y;
  if (i >= width) return;
  f32 sum = 0;
  for (size_t r = rows * blockIdx.y / slices, end = rows * (blockIdx.y + 1) / slices; r < end; ++r) sum += to_f32(dy[r * width + i]);
  part[blockIdx.y * width + i] = sum;
}
// out += the parts: 16 interleaved sums, then these in order
static __global__ void __launch_bounds__(512) add_parts(size_t parts, size_t width, f32 const* part /*[parts, width]*/, f32* out) {
  __shared__ f32 share[16][33];
  size_t const i = size_t{blockIdx.x} * 32 + threadIdx.x;
  f32 sum = 0;
  if (i < width) {
#pragma unroll 4
    for (size_t p = threadIdx.y; p < parts; p += 16) sum += part[p * width + i];
  }
  share[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || i >= width) return;
#pragma unroll
  for (int y = 1; y < 16; ++y) sum += share[y][threadIdx.x];
  out[i] += sum;
}
inline void sum_parts(cuda_context& on, size_t parts, size_t width, f32 const* part, f32* out) {
  add_parts<<<blocks_of(width, 32), dim3(32, 16), 0, on.stream>>>(parts, width, part, out);
}
}  // namespace detail

// y += x, rounded to y's element
template <class X, class Y> void add(cuda_context& on, size_t count, X const* x, Y* y) {
  if (!count) return;
  auto const run = whole_eights(count, x, y) ? detail::add_kernel<true, X, Y> : detail::add_kernel<false, X, Y>;
  run<<<blocks_of(count, 2048), 256, 0, on.stream>>>(count, x, y);
  check_launch("add");
}
template <class T> void fill(cuda_context& on, size_t count, T value, T* y) {
  if (!count) return;
  detail::fill_kernel<<<blocks_of(count, 4096), 256, 0, on.stream>>>(count, value, y);
  check_launch("fill");
}
inline void add_bias(cuda_context& on, size_t rows, size_t width, bf16 const* bias /*[width]*/, bf16* y /*[rows, width]*/) {
  size_t const eights = (width + 7) / 8, count = rows * eights;
  if (!count) return;
  auto const run = whole_eights(width, bias, y) ? detail::add_bias_kernel<true> : detail::add_bias_kernel<false>;
  run<<<blocks_of(count, 256), 256, 0, on.stream>>>(width, eights, count, bias, y);
  check_launch("add_bias");
}
// dbias[width] += the sum of the rows of dy[rows, width]: slices of rows, then the slices in order
inline void bias_backward(cuda_context& on, size_t rows, size_t width, bf16 const* dy, f32* dbias) {
  if (!rows || !width) return;
  f32* const part = scratch_of<f32>(on, detail::row_slices * width, "bias_backward");
  detail::column_slices<<<dim3(blocks_of(width, 128), detail::row_slices), 128, 0, on.stream>>>(rows, width, dy, part);
  detail::sum_parts(on, detail::row_slices, width, part, dbias);
  check_launch("bias_backward");
}
}  // namespace weft::kernels
