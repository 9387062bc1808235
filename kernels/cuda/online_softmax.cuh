// online_softmax.cuh — the arithmetic of a row of attention on a GPU, shared by the training and the paged kernels so that both give the
// same bits. It fixes the order of everything:
//   - keys in blocks of 64; scores by m16n8k16 (or wgmma, which agrees) over head_dim upward;
//   - in a segment of 256 keys a running maximum and sum; p = 2^(s c - max c), c = scale log2(e); the sum adds p before it is rounded to
//     bf16: a thread its 16 columns upward, then the quad as ((0 + 1) + (2 + 3)) at the end of the segment;
//   - the output of a segment is rescaled before the product of each block; segments are merged in order.
// Every product and sum is written as an intrinsic, so that the compiler has nothing to fuse differently in two kernels.
#pragma once
#include <weft/kernels/cuda/instructions.cuh>

namespace weft::kernels::cuda {
inline constexpr int block_keys = 64, segment_keys = 256, segment_blocks = segment_keys / block_keys;

// Two rows of a fragment, g and g + 8. max of scores before scaling; in a segment sum is this thread's part.
struct softmax_rows {
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};
// 2^((from - to) c), exactly 1 if the maximum stayed: blocks in which a row sees no key leave it as it is.
inline __device__ float decay(float from, float to, float c) { return from == to ? 1 : exp2_fast(__fmul_rn(__fsub_rn(from, to), c)); }
// Scores of a block become p; keep: what the rows' output must be multiplied by.
inline __device__ void softmax_block(float (&s)[8][4], float c, softmax_rows& rows, float (&keep)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = rows.max[r];
#pragma unroll
    for (int n = 0; n < 8; ++n) max = fmaxf(max, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
    max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 1));
    max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 2));
    float const base = max == -INFINITY ? 0 : -__fmul_rn(max, c);  // a row that has seen no key yet stays at 0
    keep[r] = decay(rows.max[r], max, c);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[n][e] = exp2_fast(__fmaf_rn(s[n][e], c, base));
        sum = __fadd_rn(sum, s[n][e]);
      }
    rows.max[r] = max;
    rows.sum[r] = __fmaf_rn(rows.sum[r], keep[r], sum);
  }
}
template <int n> __device__ void rescale(float (&out)[n][4], float const (&keep)[2]) {
  if (!__any_sync(0xffffffffu, keep[0] != 1 || keep[1] != 1)) return;  // times 1 changes no bit
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) out[i][j] = __fmul_rn(out[i][j], keep[j / 2]);
}
// The sum of a segment over the row's four threads.
inline __device__ float quad_sum(float x) {
  x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Merging a segment into what came before: both are scaled to the common maximum.
struct merge_factors {
  float max, sum, before, segment;
};
inline __device__ merge_factors merge(float max, float sum, float segment_max, float segment_sum, float c) {
  merge_factors m;
  m.max = fmaxf(max, segment_max);
  m.before = decay(max, m.max, c);
  m.segment = decay(segment_max, m.max, c);
  m.sum = __fmaf_rn(segment_sum, m.segment, __fmul_rn(sum, m.before));
  return m;
}
inline __device__ float merged(merge_factors const& m, float before, float segment) {
  return __fmaf_rn(segment, m.segment, __fmul_rn(before, m.before));
}
inline __device__ float normalised(float out, float sum) { return __fmul_rn(out, __frcp_rn(sum)); }
}  // namespace weft::kernels::cuda
