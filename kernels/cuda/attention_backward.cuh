// attention_backward.cuh — gradients of attention on a GPU: with P = exp(S - lse) and D = rowsum(dO * O),
// dV = P^T dO, dS = P (dO V^T - D), dK = scale dS^T Q, dQ = scale dS K.
//
// Two kernels, each with the sums that it owns in registers and in one order, so nothing is added by atomics and no f32 buffer is needed:
// one walks, for 128 keys, the queries of every head of the group; the other, for 128 queries, the keys. Scores are computed in both.
// The first works on transposed blocks (keys are the rows of a fragment): P^T and dS^T then are left operands where they lie.
#pragma once
#include <weft/kernels/cuda/attention.cuh>

namespace weft::kernels {
namespace cuda {
inline constexpr int tile_keys = 128;

struct attention_gradient {
  bf16 const* dout;    // [tokens, heads, head_dim]
  f32 const* lse;      // [tokens, heads]
  bf16 *dq, *dk, *dv;  // as q, k, v
  // D of a row lies in the first four bytes of its dq until dq is written.
  __device__ float* slope_sum(size_t row, int head_dim) const { return reinterpret_cast<float*>(dq + row * static_cast<size_t>(head_dim)); }
};

// A warp a row (token and head), as often as the grid must.
static __global__ void __launch_bounds__(256) attention_slope_sums(attention_input in, bf16 const* out, attention_gradient g) {
  size_t const rows = static_cast<size_t>(in.cu_seqlens[in.sequences]) * static_cast<size_t>(in.heads);
  for (size_t row = blockIdx.x * size_t{8} + threadIdx.x / 32; row < rows; row += gridDim.x * size_t{8}) {
    float sum = 0;
    for (size_t i = row * in.head_dim + lane_id() * 2; i < (row + 1) * in.head_dim; i += 64) {
      u32 const o = *reinterpret_cast<u32 const*>(out + i), d = *reinterpret_cast<u32 const*>(g.dout + i);
      sum = __fmaf_rn(low_half(o), low_half(d), sum);
      sum = __fmaf_rn(high_half(o), high_half(d), sum);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, step));
    if (lane_id() == 0) *g.slope_sum(row, in.head_dim) = sum;
  }
}

// c [16 rows of a warp, D] times factor -> bf16 rows at `to`, thread rows g and g + 8 below `count`
template <int D>
__device__ void write_rows(float const (&c)[D / 8][4], float factor, bf16* to, size_t stride, int row, int count, int head_dim) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int const i = row + half * 8;
    if (i >= count) continue;
    u32* const at = reinterpret_cast<u32*>(to + static_cast<size_t>(i) * stride);
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      if (n * 8 < head_dim)
        at[n * 4 + static_cast<int>(lane_id() % 4)] = pack(__fmul_rn(c[n][2 * half], factor), __fmul_rn(c[n][2 * half + 1], factor));
  }
}

template <int D> __global__ void __launch_bounds__(attention_threads, 1)
    attention_key_gradients(attention_input in, i32* counter, attention_gradient g) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ int slot;
  using query_tile = tile<block_keys, D>;
  tile<tile_keys, D> const k{shared_address(shared)}, v{k.address + k.bytes};
  auto const q = [=](int b) { return query_tile{v.address + v.bytes + static_cast<u32>(b % 2 * query_tile::bytes)}; };
  auto const d = [=](int b) { return query_tile{v.address + v.bytes + static_cast<u32>((2 + b % 2) * query_tile::bytes)}; };
  float* const statistics = reinterpret_cast<float*>(shared + 2 * k.bytes + 4 * query_tile::bytes);  // [2 buffers][lse, D][64 queries]
  float const c = in.scale * log2_e;
  int const group = in.heads / in.kv_heads, lane = static_cast<int>(lane_id());
  size_t const stride = static_cast<size_t>(in.heads) * in.head_dim, kv_stride = static_cast<size_t>(in.kv_heads) * in.head_dim;
  int const group_row = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 128) * 64, 0);
  int const row = static_cast<int>(threadIdx.x / 32) * 16 + lane / 4;  // of the tile's keys; this thread has row and row + 8

  sequence_tiles tiles(counter, &slot);
  sequence_tile at;
  while (tiles.next<tile_keys>(in.sequences, in.cu_seqlens, in.kv_heads, false, at)) {
    int const start = at.block * tile_keys, count = min(tile_keys, at.length - start);
    int const first = start / block_keys, blocks = (at.length + block_keys - 1) / block_keys - first, steps = blocks * group;
    size_t const keys = static_cast<size_t>(at.first + start) * kv_stride + static_cast<size_t>(at.head) * in.head_dim;
    auto const copy_queries = [&](int step) {  // of head step / blocks, block first + step % blocks
      int const head = at.head * group + step / blocks, token = (first + step % blocks) * block_keys, left = at.length - token;
      size_t const place = static_cast<size_t>(at.first + token) * stride + static_cast<size_t>(head) * in.head_dim;
      copy_tile<attention_threads>(q(step), in.q + place, stride, left, in.head_dim);
      copy_tile<attention_threads>(d(step), g.dout + place, stride, left, in.head_dim);
      copy_commit();
      if (threadIdx.x < block_keys) {
        int const i = static_cast<int>(threadIdx.x);
        size_t const r = static_cast<size_t>(at.first + token + i) * in.heads + head;
        float* const to = statistics + step % 2 * 2 * block_keys + i;
        to[0] = i < left ? g.lse[r] * log2_e : INFINITY;  // a row that is not there has p = 0
        to[block_keys] = i < left ? *g.slope_sum(r, in.head_dim) : 0;
      }
    };
    copy_tile<attention_threads>(k, in.k + keys, kv_stride, count, in.head_dim);
    copy_tile<attention_threads>(v, in.v + keys, kv_stride, count, in.head_dim);
    copy_queries(0);

    float dk[D / 8][4], dv[D / 8][4], s[8][4], dp[8][4];
    u32 p[4][4], ds[4][4];
    clear(dk), clear(dv);
    for (int step = 0; step < steps; ++step) {
      copy_wait<0>();
      shared_visible_to_tensor_cores();
      __syncthreads();
      if (step + 1 < steps) copy_queries(step + 1);
      clear(s), clear(dp);
      group_begin();
      product_nt(s, k, group_row, q(step));
      group_commit();
      product_nt(dp, v, group_row, d(step));
      group_commit();
      group_wait<1>();
      hold(s);
      float const* const lse = statistics + step % 2 * 2 * block_keys;
      int const query = (first + step % blocks) * block_keys + lane % 4 * 2, key = start + row;
      bool const diagonal = query - lane % 4 * 2 < start + group_row + 64;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          bool const seen = !diagonal || query + n * 8 + j % 2 >= key + j / 2 * 8;
          s[n][j] = seen ? exp2_fast(__fmaf_rn(s[n][j], c, -lse[n * 8 + lane % 4 * 2 + j % 2])) : 0;
        }
      to_left(s, p);
      group_wait<0>();
      hold(dp);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) dp[n][j] = __fmul_rn(s[n][j], __fadd_rn(dp[n][j], -lse[block_keys + n * 8 + lane % 4 * 2 + j % 2]));
      to_left(dp, ds);
      group_begin();
      product_nn<D>(dv, p, d(step));
      product_nn<D>(dk, ds, q(step));
      group_commit();
      group_wait<0>();
      hold(dv), hold(dk);
    }
    write_rows<D>(dk, in.scale, g.dk + keys, kv_stride, row, count, in.head_dim);
    write_rows<D>(dv, 1, g.dv + keys, kv_stride, row, count, in.head_dim);
  }
}

template <int D> __global__ void __launch_bounds__(attention_threads, 1)
    attention_query_gradients(attention_input in, i32* counter, attention_gradient g) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ int slot;
  using key_tile = tile<block_keys, D>;
  tile<tile_queries, D> const q{shared_address(shared)}, d{q.address + q.bytes};
  auto const k = [=](int b) { return key_tile{d.address + d.bytes + static_cast<u32>(b % 2 * key_tile::bytes)}; };
  auto const v = [=](int b) { return key_tile{d.address + d.bytes + static_cast<u32>((2 + b % 2) * key_tile::bytes)}; };
  float const c = in.scale * log2_e;
  size_t const stride = static_cast<size_t>(in.heads) * in.head_dim, kv_stride = static_cast<size_t>(in.kv_heads) * in.head_dim;
  int const group_row = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 128) * 64, 0);
  int const row = static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(lane_id() / 4);

  sequence_tiles tiles(counter, &slot);
  sequence_tile at;
  while (tiles.next<tile_queries>(in.sequences, in.cu_seqlens, in.heads, true, at)) {
    int const start = at.block * tile_queries, count = min(tile_queries, at.length - start),
              blocks = (start + count + block_keys - 1) / block_keys;
    size_t const kv = static_cast<size_t>(at.first) * kv_stride + static_cast<size_t>(at.head / (in.heads / in.kv_heads)) * in.head_dim;
    size_t const rows = static_cast<size_t>(at.first + start) * stride + static_cast<size_t>(at.head) * in.head_dim;
    auto const copy_keys = [&](int b) {
      size_t const place = kv + static_cast<size_t>(b) * block_keys * kv_stride;
      copy_tile<attention_threads>(k(b), in.k + place, kv_stride, at.length - b * block_keys, in.head_dim);
      copy_tile<attention_threads>(v(b), in.v + place, kv_stride, at.length - b * block_keys, in.head_dim);
      copy_commit();
    };
    copy_tile<attention_threads>(q, in.q + rows, stride, count, in.head_dim);
    copy_tile<attention_threads>(d, g.dout + rows, stride, count, in.head_dim);
    copy_keys(0);
    float lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int const i = row + half * 8;
      size_t const r = static_cast<size_t>(at.first + start + i) * in.heads + at.head;
      lse[half] = i < count ? g.lse[r] * log2_e : INFINITY;
      delta[half] = i < count ? *g.slope_sum(r, in.head_dim) : 0;
    }

    float dq[D / 8][4], s[8][4], dp[8][4];
    u32 ds[4][4];
    clear(dq);
    for (int b = 0; b < blocks; ++b) {
      copy_wait<0>();
      shared_visible_to_tensor_cores();
      __syncthreads();
      if (b + 1 < blocks) copy_keys(b + 1);
      clear(s), clear(dp);
      group_begin();
      product_nt(s, q, group_row, k(b));
      group_commit();
      product_nt(dp, d, group_row, v(b));
      group_commit();
      group_wait<1>();
      hold(s);
      if (b * block_keys + block_keys > start + group_row) mask_later_keys(s, start + row - b * block_keys);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) s[n][j] = exp2_fast(__fmaf_rn(s[n][j], c, -lse[j / 2]));
      group_wait<0>();
      hold(dp);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) dp[n][j] = __fmul_rn(s[n][j], __fadd_rn(dp[n][j], -delta[j / 2]));
      to_left(dp, ds);
      group_begin();
      product_nn<D>(dq, ds, k(b));
      group_commit();
      group_wait<0>();
      hold(dq);
    }
    write_rows<D>(dq, in.scale, g.dq + rows, stride, row, count, in.head_dim);
  }
}

template <int D> void launch_attention_backward(cuda_context& on, attention_input const& in, bf16 const* out, attention_gradient const& g) {
  constexpr size_t shared = 2 * tile<128, D>::bytes + 4 * tile<64, D>::bytes, statistics = 4 * block_keys * sizeof(float);
  static unsigned const sum_grid = resident_blocks(attention_slope_sums, 256, 0);
  static unsigned const key_grid = resident_blocks(attention_key_gradients<D>, attention_threads, shared + statistics);
  static unsigned const query_grid = resident_blocks(attention_query_gradients<D>, attention_threads, shared);
  i32* const counters = tile_counters(on, 2);
  attention_slope_sums<<<sum_grid, 256, 0, on.stream>>>(in, out, g);
  check_launch("attention_backward");
  attention_key_gradients<D><<<key_grid, attention_threads, shared + statistics, on.stream>>>(in, counters, g);
  check_launch("attention_backward");
  attention_query_gradients<D><<<query_grid, attention_threads, shared, on.stream>>>(in, counters + 1, g);
  check_launch("attention_backward");
}
}  // namespace cuda

// dq, dk, dv are written; out and lse are attention's.
inline void attention_backward(cuda_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, size_t head_dim,
                               f32 scale, bf16 const* q, bf16 const* k, bf16 const* v, bf16 const* out, f32 const* lse, bf16 const* dout,
                               bf16* dq, bf16* dk, bf16* dv) {
  auto const in = cuda::attention_arguments(sequences, cu_seqlens, heads, kv_heads, head_dim, scale, q, k, v);
  cuda::attention_gradient const g{dout, lse, dq, dk, dv};
  head_dim <= 64 ? cuda::launch_attention_backward<64>(on, in, out, g) : cuda::launch_attention_backward<128>(on, in, out, g);
}
}  // namespace weft::kernels
