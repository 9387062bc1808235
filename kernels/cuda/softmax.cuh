// softmax.cuh — the one softmax of a row of logits on a GPU, for training and for sampling, so that both record the same bits.
//
// A row is cut into segments of 1024 ids. One warp reduces a segment in its registers; one warp merges the segments. Both are functions of
// the row alone. Logits are bf16 or f32.
#pragma once
#include <weft/kernels/cuda/vector.cuh>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
inline constexpr unsigned segment_ids = 1024;
inline constexpr unsigned most_segments = 512;  // a vocabulary of at most 524,288
inline unsigned segments_of(size_t vocab) {
  unsigned const n = blocks_of(vocab, segment_ids);
  if (n > most_segments) throw std::runtime_error("softmax: a vocabulary of " + std::to_string(vocab) + " is above 524288");
  return n;
}

namespace detail {
struct softmax_part {
  f32 max, sum, weighted;  // sum of 2^y and of y 2^y, y = (logit - max) * inverse_temperature * log2(e)
};

// id of x[g].at[e] in its segment
__device__ inline unsigned segment_id(int g, int e) {
  return 256u * static_cast<unsigned>(g) + 8u * (threadIdx.x % 32) + static_cast<unsigned>(e);
}
template <bool whole, class L> __device__ inline void load_segment(L const* logits, size_t vocab, unsigned segment, eight (&x)[4]) {
#pragma unroll
  for (int g = 0; g < 4; ++g) x[g] = load8<whole>(logits, size_t{segment} * segment_ids + segment_id(g, 0), vocab, minus_infinity);
}
template <bool full> __device__ inline softmax_part softmax_segment(eight const (&x)[4],
                                                                    unsigned count /*ids of the segment that the row has*/,
                                                                    f32 inverse_temperature) {
  f32 most = minus_infinity;
#pragma unroll
  for (int g = 0; g < 4; ++g)
#pragma unroll
    for (int e = 0; e < 8; ++e) most = fmaxf(most, x[g].at[e]);
  f32 const max = warp_max(most), scale = __fmul_rn(inverse_temperature, log2_e);
  f32 sum = 0, weighted = 0;
#pragma unroll
  for (int g = 0; g < 4; ++g)
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      f32 y = __fmul_rn(__fsub_rn(x[g].at[e], max), scale);
      if (!full && segment_id(g, e) >= count) y = -10000.0f;
      f32 const p = exp2_fast(y);
      sum = __fadd_rn(sum, p);
      weighted = __fmaf_rn(y, p, weighted);
    }
  return {max, warp_sum(sum), warp_sum(weighted)};
}
__device__ inline softmax_part softmax_segment(eight const (&x)[4], unsigned count, f32 inverse_temperature) {
  return count == segment_ids ? softmax_segment<true>(x, count, inverse_temperature)
                              : softmax_segment<false>(x, count, inverse_temperature);
}
// One warp; part(s): the part of segment s. Every lane gets the result.
template <class Part> __device__ softmax_sums<f32> softmax_merge(Part const& part, unsigned segments, f32 inverse_temperature) {
  f32 most = minus_infinity;
  for (unsigned s = threadIdx.x % 32; s < segments; s += 32) most = fmaxf(most, part(s).max);
  f32 const max = warp_max(most), log_scale = __fmul_rn(inverse_temperature, log2_e);
  f32 sum = 0, weighted = 0;
  for (unsigned s = threadIdx.x % 32; s < segments; s += 32) {
    softmax_part const p = part(s);
    f32 const y = __fmul_rn(__fsub_rn(p.max, max), log_scale), scale = exp2f(y);
    sum = __fmaf_rn(scale, p.sum, sum);
    weighted = __fmaf_rn(scale, __fmaf_rn(y, p.sum, p.weighted), weighted);
  }
  f32 const total = warp_sum(sum), log_sum = logf(total);
  return {max, log_sum, __fsub_rn(log_sum, __fdiv_rn(__fmul_rn(warp_sum(weighted), ln_2), total))};
}
__device__ inline f32 log_prob_of_logit(softmax_sums<f32> const& row, f32 logit, f32 inverse_temperature) {
  return __fmaf_rn(__fsub_rn(logit, row.max), inverse_temperature, -row.log_sum);
}
__device__ inline unsigned ids_in_segment(size_t vocab, unsigned segment) {
  size_t const left = vocab - size_t{segment} * segment_ids;
  return left < segment_ids ? static_cast<unsigned>(left) : segment_ids;
}
}  // namespace detail
}  // namespace weft::kernels
