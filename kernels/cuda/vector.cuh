// vector.cuh — eight neighbours of a row at once, and sums over a team of threads in a fixed order.
//
// Who adds what is a function of the width alone, and every rounding step is written out, so a row has the same bits in every kernel that
// calls these, at every place, whether its memory allows 16-byte accesses (whole) or not.
#pragma once
#include <weft/kernels/cuda/context.cuh>

namespace weft::kernels {
namespace detail {
inline constexpr f32 minus_infinity = -__builtin_huge_valf();
}

struct eight {
  f32 at[8];
};

template <class... X> bool whole_eights(size_t width, X const*... rows) {
  return width % 8 == 0 && ((reinterpret_cast<std::uintptr_t>(rows) % 16 == 0) && ...);
}

template <bool whole> __device__ inline eight load8(bf16 const* row, size_t i, size_t width, f32 beyond = 0) {
  eight v;
  if constexpr (whole) {
    if (i >= width) {
#pragma unroll
      for (int e = 0; e < 8; ++e) v.at[e] = beyond;
      return v;
    }
    uint4 const raw = *reinterpret_cast<uint4 const*>(row + i);
    u32 const word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int e = 0; e < 4; ++e) v.at[2 * e] = __uint_as_float(word[e] << 16), v.at[2 * e + 1] = __uint_as_float(word[e] & 0xffff0000u);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) v.at[e] = i + e < width ? to_f32(row[i + e]) : beyond;
  }
  return v;
}
template <bool whole> __device__ inline eight load8(f32 const* row, size_t i, size_t width, f32 beyond = 0) {
  eight v;
  if (whole && i < width) {
    float4 const a = reinterpret_cast<float4 const*>(row + i)[0], b = reinterpret_cast<float4 const*>(row + i)[1];
    v = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) v.at[e] = i + e < width ? row[i + e] : beyond;
  }
  return v;
}
template <bool whole> __device__ inline void store8(bf16* row, size_t i, size_t width, eight const& v) {
  if constexpr (whole) {
    if (i >= width) return;
    u32 word[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) word[e] = u32{to_bf16(v.at[2 * e]).bits} | u32{to_bf16(v.at[2 * e + 1]).bits} << 16;
    *reinterpret_cast<uint4*>(row + i) = {word[0], word[1], word[2], word[3]};
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (i + e < width) row[i + e] = to_bf16(v.at[e]);
  }
}
template <bool whole> __device__ inline void store8(f32* row, size_t i, size_t width, eight const& v) {
  if (whole && i < width) {
    reinterpret_cast<float4*>(row + i)[0] = {v.at[0], v.at[1], v.at[2], v.at[3]};
    reinterpret_cast<float4*>(row + i)[1] = {v.at[4], v.at[5], v.at[6], v.at[7]};
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (i + e < width) row[i + e] = v.at[e];
  }
}

// All lanes get the sum; the tree is symmetric, so they get the same bits.
__device__ inline f32 warp_sum(f32 x) {
#pragma unroll
  for (int d = 16; d; d /= 2) x = __fadd_rn(x, __shfl_xor_sync(~0u, x, d));
  return x;
}
__device__ inline f32 warp_max(f32 x) {
#pragma unroll
  for (int d = 16; d; d /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
  return x;
}
// A team is half a warp, one warp, or the whole block.
template <int team> __device__ inline f32 team_sum(f32 x) {
#pragma unroll
  for (int d = team < 32 ? team / 2 : 16; d; d /= 2) x = __fadd_rn(x, __shfl_xor_sync(~0u, x, d));
  if constexpr (team > 32) {
    __shared__ f32 part[team / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
#pragma unroll
    for (int w = 1; w < team / 32; ++w) x = __fadd_rn(x, part[w]);
  }
  return x;
}
// e^x and 2^x by the special function unit: 2 ulp and a rounding of x; results below the normal range are 0.
__device__ inline f32 exp2_fast(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline constexpr f32 log2_e = 1.44269504088896f, ln_2 = 0.693147180559945f;
__device__ inline f32 exp_fast(f32 x) { return exp2_fast(__fmul_rn(x, log2_e)); }
inline unsigned blocks_of(size_t work, size_t each) { return static_cast<unsigned>((work + each - 1) / each); }
}  // namespace weft::kernels
