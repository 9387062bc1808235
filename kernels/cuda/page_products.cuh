// page_products.cuh — the two products of paged attention for 16 rows of a warp: queries with 16 keys, probabilities with 16 values.
//
// bf16 pages give the bits of tile.cuh's products. f8e4m3 pages become f16 in registers: every f8 value is one, and one instruction widens
// two. Queries are shifted by a power of two into f16's range, a row's own; the scales of keys multiply the scores, those of values the
// probabilities, in units of a power of two that only grows (see `units`). So that reads of the 132-byte rows meet no bank conflict, a
// fragment's columns stand for other keys and its inner index for other elements than usual: thread t's columns are keys 4t .. 4t + 3 of
// the part.
#pragma once
#include <cuda_fp8.h>
#include <weft/kernels/cuda/paged_ring.cuh>

namespace weft::kernels::cuda {
template <class Kv, int D, bool whole /*head_dim = D*/> struct page_products {
  struct units {  // what one of `out` stands for
    __device__ float operator()(float x) const { return x; }
  };
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
  // s[2 u], s[2 u + 1]: of part u. Parts take turns, so that one need not wait for its own last step.
  template <int n> __device__ void scores(float (*s)[4], u32 const (&part)[n], int) const {
    int const lane = static_cast<int>(lane_id());
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
#pragma unroll
      for (int u = 0; u < n; ++u) {
        u32 y[4];
        load_matrices(y, tile<part_tokens, D>{part[u]}.chunk(lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
        multiply_add(s[2 * u], q[k], y[0], y[1]);
        multiply_add(s[2 * u + 1], q[k], y[2], y[3]);
      }
  }
  // out: `groups` of 32 elements of head_dim, from group `first` on
  template <int groups> __device__ void add_values(float (&out)[4 * groups][4], int first, float const (&p0)[4], float const (&p1)[4],
                                                   u32 part, int, units&) const {
    tile<part_tokens, D> const values{part};
    int const lane = static_cast<int>(lane_id());
    u32 const p[4] = {pack(p0[0], p0[1]), pack(p0[2], p0[3]), pack(p1[0], p1[1]), pack(p1[2], p1[3])};
#pragma unroll
    for (int n = 0; n < 4 * groups; n += 2) {
      u32 y[4];
      load_matrices_transposed(y, values.chunk(lane % 16, first * 4 + n + lane / 16));
      multiply_add(out[n], p, y[0], y[1]);
      multiply_add(out[n + 1], p, y[2], y[3]);
    }
  }
  // f(element, value) for what this thread has of row g (half 0) or g + 8
  template <int groups, class F> __device__ static void each(float const (&out)[4 * groups][4], int first, int half, F const& f) {
#pragma unroll
    for (int n = 0; n < 4 * groups; ++n) {
      int const i = (first * 4 + n) * 8 + static_cast<int>(lane_id() % 4) * 2;
      f(i, out[n][2 * half]);
      f(i + 1, out[n][2 * half + 1]);
    }
  }
};

template <int D, bool whole> struct page_products<f8e4m3, D, whole> {
  static constexpr int words = D / 4;  // of a row, without its scale
  // Sums of values are kept in units of 2^(exponent - 138), which follows the largest scale seen, so that probability times scale fits f16.
  struct units {
    u32 exponent = 40;  // as f32 stores it
    __device__ float operator()(float x) const { return __fmul_rn(x, power(exponent - 11)); }
  };
  u32 q[D / 16][4];
  float unit[2];  // of rows g and g + 8 of the queries
  static __device__ float power(u32 exponent) { return __uint_as_float(exponent << 23); }
  __device__ static int key(int column, int n) { return static_cast<int>(lane_id() % 4) * 4 + n * 2 + column; }
  __device__ static int inner_word(int k) {
    int const t = static_cast<int>(lane_id() % 4);
    return words / 2 * (t & 1) + 2 * (t >> 1) + (k & 1) + 4 * (k >> 1);
  }
  static __device__ u32 read(u32 part, int row, int w, int head_dim) {
    return *static_cast<u32 const*>(__cvta_shared_to_generic(part + static_cast<u32>(row * ((whole ? D : head_dim) + 4) + w * 4)));
  }
  static __device__ u32 word(u32 part, int row, int w, int head_dim) {
    return whole || w < head_dim / 4 ? read(part, row, w, head_dim) : 0;
  }
  static __device__ float scale(u32 part, int row, int head_dim) {
    return __uint_as_float(read(part, row, (whole ? D : head_dim) / 4, head_dim));
  }
  static __device__ u32 widen(u32 x) {  // the lower two bytes
    __half2_raw const y = __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(x), __NV_E4M3);
    return static_cast<u32>(y.x) | static_cast<u32>(y.y) << 16;
  }
  static __device__ u32 pack_f16(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  static __device__ void multiply_add_f16(float (&c)[4], u32 const (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  static __device__ float most_of_quad(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
  }

  __device__ void load_queries(bf16 const* low, bf16 const* high, int head_dim) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bf16 const* const x = half ? high : low;
      auto const four = [=](int k) {
        int const i = inner_word(k) * 4;
        return x && i < head_dim ? *reinterpret_cast<uint2 const*>(x + i) : uint2{0, 0};
      };
      float most = 0;
#pragma unroll
      for (int k = 0; k < D / 16; ++k) {
        uint2 const a = four(k);
        most = fmaxf(fmaxf(most, fmaxf(fabsf(low_half(a.x)), fabsf(high_half(a.x)))), fmaxf(fabsf(low_half(a.y)), fabsf(high_half(a.y))));
      }
      u32 const exponent = max(__float_as_uint(most_of_quad(most)) >> 23, 20u);
      float const f = power(264 - exponent);  // the largest comes to 2^10
      unit[half] = power(exponent - 10);
#pragma unroll
      for (int k = 0; k < D / 16; ++k) {
        uint2 const a = four(k);
        q[k][half] = pack_f16(__fmul_rn(low_half(a.x), f), __fmul_rn(high_half(a.x), f));
        q[k][2 + half] = pack_f16(__fmul_rn(low_half(a.y), f), __fmul_rn(high_half(a.y), f));
      }
    }
  }
  template <int n> __device__ void scores(float (*s)[4], u32 const (&part)[n], int head_dim) const {
    int const g = static_cast<int>(lane_id() / 4), row = 4 * (g >> 1) + (g & 1);
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
#pragma unroll
      for (int u = 0; u < n; ++u) {
        u32 const x = word(part[u], row, inner_word(k), head_dim), y = word(part[u], row + 2, inner_word(k), head_dim);
        multiply_add_f16(s[2 * u], q[k], widen(x), widen(x >> 16));
        multiply_add_f16(s[2 * u + 1], q[k], widen(y), widen(y >> 16));
      }
#pragma unroll
    for (int u = 0; u < n; ++u)
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        float& x = s[2 * u + e / 4][e % 4];
        x = __fmul_rn(x, __fmul_rn(scale(part[u], key(e % 2, e / 4), head_dim), unit[e / 2 % 2]));
      }
  }
  __device__ static int value_word(int c) {
    int const g = static_cast<int>(lane_id() / 4);
    return (g & 3) + words / 2 * (g >> 2) + 4 * c;
  }
  template <int groups> __device__ void add_values(float (&out)[4 * groups][4], int first, float const (&p0)[4], float const (&p1)[4],
                                                   u32 part, int head_dim, units& in) const {
    int const row = static_cast<int>(lane_id() % 4) * 4;
    float a = scale(part, row, head_dim), b = scale(part, row + 1, head_dim), c = scale(part, row + 2, head_dim),
          d = scale(part, row + 3, head_dim);
    u32 const exponent = __float_as_uint(most_of_quad(fmaxf(fmaxf(a, b), fmaxf(c, d)))) >> 23;  // of all 16 keys: equal in the warp
    if (exponent > in.exponent) {
      float const smaller = exponent - in.exponent < 127 ? power(127 + in.exponent - exponent) : 0;
#pragma unroll
      for (int n = 0; n < 4 * groups; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) out[n][j] = __fmul_rn(out[n][j], smaller);
      in.exponent = exponent;
    }
    float const f = power(265 - in.exponent);  // probability times scale stays below 2^12
    a = __fmul_rn(a, f), b = __fmul_rn(b, f), c = __fmul_rn(c, f), d = __fmul_rn(d, f);
    u32 const p[4] = {pack_f16(__fmul_rn(p0[0], a), __fmul_rn(p0[1], b)), pack_f16(__fmul_rn(p0[2], a), __fmul_rn(p0[3], b)),
                      pack_f16(__fmul_rn(p1[0], c), __fmul_rn(p1[1], d)), pack_f16(__fmul_rn(p1[2], c), __fmul_rn(p1[3], d))};
#pragma unroll
    for (int n = 0; n < groups; ++n) {
      u32 x[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = word(part, row + j, value_word(first + n), head_dim);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {  // bytes i and i + 1 of keys 0 and 1, of keys 2 and 3
        u32 const pick = i ? 0x7362u : 0x5140u, low = __byte_perm(x[0], x[1], pick), high = __byte_perm(x[2], x[3], pick);
        multiply_add_f16(out[n * 4 + i], p, widen(low), widen(high));
        multiply_add_f16(out[n * 4 + i + 1], p, widen(low >> 16), widen(high >> 16));
      }
    }
  }
  template <int groups, class F> __device__ static void each(float const (&out)[4 * groups][4], int first, int half, F const& f) {
    // the thread's columns 2t and 2t + 1 of a product are those of words value_word(.) with g = 2t and 2t + 1
#pragma unroll
    for (int n = 0; n < 4 * groups; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int const g = static_cast<int>(lane_id() % 4) * 2 + e;
        f(4 * ((g & 3) + words / 2 * (g >> 2) + 4 * (first + n / 4)) + n % 4, out[n][2 * half + e]);
      }
  }
};
}  // namespace weft::kernels::cuda
