// page_products.cuh — the two products of paged attention for 16 rows of a warp: queries with 16 keys, probabilities with 16 values.
//
// bf16 pages give the bits of tile.cuh's products. f8e4m3 pages become bf16 in registers (every f8 value is one), their scales multiply
// scores and probabilities. So that reads of the 132-byte rows meet no bank conflict, a fragment's columns stand for other keys and its
// inner index for other elements than usual: thread t's columns are keys 4t .. 4t + 3 of the part.
#pragma once
#include <weft/kernels/cuda/paged_ring.cuh>

namespace weft::kernels::cuda {
template <class Kv, int D, bool whole /*head_dim = D*/> struct page_products {
  u32 q[D / 16][4];
  __device__ static int key(int column /*of the part: 0 or 1 in tile n*/, int n) {
    return n * 8 + static_cast<int>(lane_id() % 4) * 2 + column;
  }

  // Rows g and g + 8 of the queries, null: zeros.
  __device__ void load_queries(bf16 const* low, bf16 const* high, int head_dim) {
    auto const pair = [=](bf16 const* x, int i) { return x && i < head_dim ? *reinterpret_cast<u32 const*>(x + i) : 0u; };
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      int const i = k * 16 + static_cast<int>(lane_id() % 4) * 2;
      q[k][0] = pair(low, i), q[k][1] = pair(high, i), q[k][2] = pair(low, i + 8), q[k][3] = pair(high, i + 8);
    }
  }
  __device__ void scores(float (&s0)[4], float (&s1)[4], u32 part, int) const {
    tile<part_tokens, D> const keys{part};
    int const lane = static_cast<int>(lane_id());
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      u32 y[4];
      load_matrices(y, keys.chunk(lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
      multiply_add(s0, q[k], y[0], y[1]);
      multiply_add(s1, q[k], y[2], y[3]);
    }
  }
  __device__ void add_values(float (&out)[D / 8][4], float const (&p0)[4], float const (&p1)[4], u32 part, int) const {
    tile<part_tokens, D> const values{part};
    int const lane = static_cast<int>(lane_id());
    u32 const p[4] = {pack(p0[0], p0[1]), pack(p0[2], p0[3]), pack(p1[0], p1[1]), pack(p1[2], p1[3])};
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      u32 y[4];
      load_matrices_transposed(y, values.chunk(lane % 16, n + lane / 16));
      multiply_add(out[n], p, y[0], y[1]);
      multiply_add(out[n + 1], p, y[2], y[3]);
    }
  }
  // f(element, value 0, value 1) for this thread's pairs of row g (half 0) or g + 8
  template <class F> __device__ static void each_pair(float const (&out)[D / 8][4], int half, F const& f) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      f(n * 8 + static_cast<int>(lane_id() % 4) * 2, out[n][2 * half]);
      f(n * 8 + static_cast<int>(lane_id() % 4) * 2 + 1, out[n][2 * half + 1]);
    }
  }
};

template <int D, bool whole> struct page_products<f8e4m3, D, whole> {
  static constexpr int words = D / 4;  // of a row, without its scale
  u32 q[D / 16][4];
  __device__ static int key(int column, int n) { return static_cast<int>(lane_id() % 4) * 4 + n * 2 + column; }
  __device__ static int inner_word(int k) {
    int const t = static_cast<int>(lane_id() % 4);
    return words / 2 * (t & 1) + 2 * (t >> 1) + (k & 1) + 4 * (k >> 1);
  }
  __device__ static u32 word(u32 part, int row, int w, int head_dim) {
    if (!whole && w > head_dim / 4) return 0;
    return *static_cast<u32 const*>(__cvta_shared_to_generic(part + static_cast<u32>(row * ((whole ? D : head_dim) + 4) + w * 4)));
  }
  static __device__ float scale(u32 part, int row, int head_dim) {
    return __uint_as_float(word(part, row, (whole ? D : head_dim) / 4, head_dim));
  }
  // bytes 1 and 3 of x, f8e4m3, as a pair of bf16: exponent and mantissa moved into place, then times 2^120
  static __device__ u32 widen(u32 x) {
    u32 const bits = (x & 0x80008000u) | ((x & 0x7f007f00u) >> 4);
    u32 y;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(bits), "r"(0x7b807b80u), "r"(0x80008000u));
    return y;
  }

  __device__ void load_queries(bf16 const* low, bf16 const* high, int head_dim) {
    auto const four = [=](bf16 const* x, int i) { return x && i < head_dim ? *reinterpret_cast<uint2 const*>(x + i) : uint2{0, 0}; };
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      uint2 const a = four(low, inner_word(k) * 4), b = four(high, inner_word(k) * 4);
      q[k][0] = a.x, q[k][1] = b.x, q[k][2] = a.y, q[k][3] = b.y;
    }
  }
  __device__ void scores(float (&s0)[4], float (&s1)[4], u32 part, int head_dim) const {
    int const g = static_cast<int>(lane_id() / 4), row = 4 * (g >> 1) + (g & 1);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      u32 const x = word(part, row, inner_word(k), head_dim), y = word(part, row + 2, inner_word(k), head_dim);
      multiply_add(s0, q[k], widen(__byte_perm(x, 0, 0x1404)), widen(__byte_perm(x, 0, 0x3424)));
      multiply_add(s1, q[k], widen(__byte_perm(y, 0, 0x1404)), widen(__byte_perm(y, 0, 0x3424)));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      s0[e] = __fmul_rn(s0[e], scale(part, key(e % 2, 0), head_dim));
      s1[e] = __fmul_rn(s1[e], scale(part, key(e % 2, 1), head_dim));
    }
  }
  __device__ static int value_word(int c) {
    int const g = static_cast<int>(lane_id() / 4);
    return (g & 3) + words / 2 * (g >> 2) + 4 * c;
  }
  __device__ void add_values(float (&out)[D / 8][4], float const (&p0)[4], float const (&p1)[4], u32 part, int head_dim) const {
    int const row = static_cast<int>(lane_id() % 4) * 4;
    float const a = scale(part, row, head_dim), b = scale(part, row + 1, head_dim), c = scale(part, row + 2, head_dim),
                d = scale(part, row + 3, head_dim);
    u32 const p[4] = {pack(__fmul_rn(p0[0], a), __fmul_rn(p0[1], b)), pack(__fmul_rn(p0[2], a), __fmul_rn(p0[3], b)),
                      pack(__fmul_rn(p1[0], c), __fmul_rn(p1[1], d)), pack(__fmul_rn(p1[2], c), __fmul_rn(p1[3], d))};
#pragma unroll
    for (int n = 0; n < D / 32; ++n) {
      u32 x[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = word(part, row + j, value_word(n), head_dim);
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // byte i of keys 0 and 1, of keys 2 and 3
        u32 const pick = static_cast<u32>(i) << 4 | static_cast<u32>(i + 4) << 12;
        multiply_add(out[n * 4 + i], p, widen(__byte_perm(x[0], x[1], pick)), widen(__byte_perm(x[2], x[3], pick)));
      }
    }
  }
  template <class F> __device__ static void each_pair(float const (&out)[D / 8][4], int half, F const& f) {
    // the thread's columns 2t and 2t + 1 of a product are those of words value_word(.) with g = 2t and 2t + 1
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int const g = static_cast<int>(lane_id() % 4) * 2 + e;
        f(4 * ((g & 3) + words / 2 * (g >> 2) + 4 * (n / 4)) + n % 4, out[n][2 * half + e]);
      }
  }
};
}  // namespace weft::kernels::cuda
