// score.cuh — the score head, see score.hpp: few labels, so no tensor core; sums in f32 in an order that the width alone decides.
#pragma once
#include <weft/kernels/cuda/elementwise.cuh>
#include <weft/kernels/score.hpp>

namespace weft::kernels {
namespace detail {
// One warp a row and label.
static __global__ void __launch_bounds__(256)
    score_kernel(size_t rows, size_t labels, size_t width, bf16 const* hidden, bf16 const* weight, f32* scores) {
  size_t const at = size_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (at >= rows * labels) return;
  bf16 const *const x = hidden + at / labels * width, *const w = weight + at % labels * width;
  f32 sum = 0;
  for (size_t i = threadIdx.x % 32; i < width; i += 32) sum = __fmaf_rn(to_f32(x[i]), to_f32(w[i]), sum);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) scores[at] = sum;
}
static __global__ void __launch_bounds__(256)
    score_input_gradient(size_t rows, size_t labels, size_t width, bf16 const* weight, f32 const* dscores, bf16* dhidden) {
  size_t const at = size_t{blockIdx.x} * 256 + threadIdx.x;
  if (at >= rows * width) return;
  f32 sum = 0;
  for (size_t l = 0; l < labels; ++l) sum = __fmaf_rn(dscores[at / width * labels + l], to_f32(weight[l * width + at % width]), sum);
  dhidden[at] = to_bf16(sum);
}
// part[slice][label, width]: the sum of a slice of rows, in order
static __global__ void __launch_bounds__(128)
    score_weight_slices(size_t rows, size_t labels, size_t width, bf16 const* hidden, f32 const* dscores, f32* part) {
  size_t const i = size_t{blockIdx.x} * 128 + threadIdx.x, slices = gridDim.y, label = blockIdx.z;
  if (i >= width) return;
  f32 sum = 0;
  for (size_t r = rows * blockIdx.y / slices, end = rows * (blockIdx.y + 1) / slices; r < end; ++r)
    sum = __fmaf_rn(dscores[r * labels + label], to_f32(hidden[r * width + i]), sum);
  part[(blockIdx.y * labels + label) * width + i] = sum;
}
}  // namespace detail

inline void score_rows(cuda_context& on, size_t rows, size_t labels, size_t width, bf16 const* hidden, bf16 const* weight, f32* scores) {
  if (!rows) return;
  detail::score_kernel<<<blocks_of(rows * labels, 8), 256, 0, on.stream>>>(rows, labels, width, hidden, weight, scores);
  check_launch("score_rows");
}
inline void score_rows_backward(cuda_context& on, size_t rows, size_t labels, size_t width, bf16 const* hidden, bf16 const* weight,
                                f32 const* dscores, bf16* dhidden, f32* dweight) {
  if (!rows) return;
  detail::score_input_gradient<<<blocks_of(rows * width, 256), 256, 0, on.stream>>>(rows, labels, width, weight, dscores, dhidden);
  f32* const part = scratch_of<f32>(on, detail::row_slices * labels * width, "score_rows_backward");
  dim3 const grid(blocks_of(width, 128), detail::row_slices, static_cast<unsigned>(labels));
  detail::score_weight_slices<<<grid, 128, 0, on.stream>>>(rows, labels, width, hidden, dscores, part);
  detail::sum_parts(on, detail::row_slices, labels * width, part, dweight);
  check_launch("score_rows_backward");
}
}  // namespace weft::kernels
