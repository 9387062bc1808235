// attention.cuh — attention of packed sequences on a GPU; see attention.hpp. bf16 in and out, f32 inside; head_dim a multiple of 8 up to 128.
//
// After Dao, "FlashAttention-2", 2023, and Shah et al., "FlashAttention-3", 2024: a block of 256 threads holds 128 queries of a head, 64
// for each warpgroup, and walks the keys in blocks of 64. The scores of a block are computed while the values of the one before are added.
// The order of all sums is fixed by online_softmax.cuh; attention_paged has the same.
#pragma once
#include <cmath>
#include <weft/kernels/attention.hpp>
#include <weft/kernels/cuda/online_softmax.cuh>
#include <weft/kernels/cuda/sequence_tiles.cuh>
#include <weft/kernels/cuda/tile.cuh>

namespace weft::kernels {
namespace cuda {
inline constexpr int attention_threads = 256, tile_queries = 128;
inline constexpr float log2_e = 1.4426950408889634f;

struct attention_input {
  int sequences, heads, kv_heads, head_dim;
  i32 const* cu_seqlens;  // [sequences + 1]
  float scale;
  bf16 const *q /*[tokens, heads, head_dim]*/, *k /*[tokens, kv_heads, head_dim]*/, *v;
};

// Scores of keys after the query become -inf. row: query minus the block's first key, of this thread's first row.
inline __device__ void mask_later_keys(float (&s)[8][4], int row) {
  int const column = static_cast<int>(lane_id() % 4) * 2;
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (n * 8 + column + j % 2 > row + j / 2 * 8) s[n][j] = -INFINITY;
}

// The online softmax of this warp's 16 rows and their output, segment by segment.
template <int D> struct attention_rows {
  softmax_rows segment;
  float total_max[2], total_sum[2];
  float out[D / 8][4], total[D / 8][4];

  // After the products of a segment; its parts are then in total.
  __device__ void end_segment(softmax_rows const& ended, bool first, float c) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float const sum = quad_sum(ended.sum[r]);
      if (first) {
        total_max[r] = ended.max[r], total_sum[r] = sum;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) total[n][2 * r] = out[n][2 * r], total[n][2 * r + 1] = out[n][2 * r + 1];
      } else {
        merge_factors const m = merge(total_max[r], total_sum[r], ended.max[r], sum, c);
        total_max[r] = m.max, total_sum[r] = m.sum;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
          for (int j = 2 * r; j < 2 * r + 2; ++j) total[n][j] = merged(m, total[n][j], out[n][j]);
      }
    }
  }
};

template <int D> __global__ void __launch_bounds__(attention_threads, 1)
    attention_forward(attention_input in, i32* counter, bf16* out, f32* lse) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ int slot;
  using key_tile = tile<block_keys, D>;
  tile<tile_queries, D> const q{shared_address(shared)};
  auto const k = [=](int b) { return key_tile{q.address + q.bytes + static_cast<u32>(b % 2 * key_tile::bytes)}; };
  auto const v = [=](int b) { return key_tile{q.address + q.bytes + static_cast<u32>((2 + b % 2) * key_tile::bytes)}; };
  float const c = in.scale * log2_e;
  size_t const stride = static_cast<size_t>(in.heads) * in.head_dim, kv_stride = static_cast<size_t>(in.kv_heads) * in.head_dim;
  int const warp_row = static_cast<int>(threadIdx.x / 32) * 16, group_row = __shfl_sync(0xffffffffu, warp_row / 64 * 64, 0),
            row = warp_row + static_cast<int>(lane_id() / 4);

  sequence_tiles tiles(counter, &slot);
  sequence_tile at;
  while (tiles.next<tile_queries>(in.sequences, in.cu_seqlens, in.heads, true, at)) {
    int const start = at.block * tile_queries, end = min(start + tile_queries, at.length), blocks = (end + block_keys - 1) / block_keys;
    size_t const kv = static_cast<size_t>(at.first) * kv_stride + static_cast<size_t>(at.head / (in.heads / in.kv_heads)) * in.head_dim;
    size_t const rows = static_cast<size_t>(at.first + start) * stride + static_cast<size_t>(at.head) * in.head_dim;
    auto const copy_keys = [&](bf16 const* x, int b, key_tile to) {
      copy_tile<attention_threads>(to, x + kv + static_cast<size_t>(b) * block_keys * kv_stride, kv_stride, at.length - b * block_keys,
                                   in.head_dim);
    };
    copy_tile<attention_threads>(q, in.q + rows, stride, end - start, in.head_dim);
    copy_keys(in.k, 0, k(0));
    copy_commit();

    attention_rows<D> r;
    float s[8][4], keep[2];
    u32 p[4][4];
    auto const arrived = [&](int b) {  // keys b and values b - 1; the next ones set out
      copy_wait<0>();
      shared_visible_to_tensor_cores();
      __syncthreads();
      if (b + 1 < blocks) copy_keys(in.k, b + 1, k(b + 1));
      copy_keys(in.v, b, v(b));
      copy_commit();
    };
    auto const mask = [&](int b) {
      if (b * block_keys + block_keys > start + group_row) mask_later_keys(s, start + row - b * block_keys);
    };
    arrived(0);
    clear(s);
    group_begin();
    product_nt(s, q, group_row, k(0));
    group_commit();
    group_wait<0>();
    hold(s);
    mask(0);
    softmax_block(s, c, r.segment, keep);
    to_left(s, p);
    clear(r.out);
    auto const step = [&]<bool new_segment>(int b) {
      arrived(b);
      clear(s);
      group_begin();
      product_nt(s, q, group_row, k(b));
      group_commit();
      product_nn<D>(r.out, p, v(b - 1));
      group_commit();
      group_wait<1>();
      hold(s);
      mask(b);
      softmax_rows const ended = r.segment;
      if (new_segment) r.segment = {};
      softmax_block(s, c, r.segment, keep);
      group_wait<0>();
      hold(r.out);
      if (new_segment) {
        r.end_segment(ended, b == segment_blocks, c);
        clear(r.out);
      } else {
        rescale(r.out, keep);
      }
      to_left(s, p);
    };
    for (int b = 1; b < blocks; ++b) {  // two copies of the code: with the end of a segment as a branch inside, registers spill
      if (b % segment_blocks) step.template operator()<false>(b);
      else step.template operator()<true>(b);
    }
    copy_wait<0>();
    shared_visible_to_tensor_cores();
    __syncthreads();
    group_begin();
    product_nn<D>(r.out, p, v(blocks - 1));
    group_commit();
    group_wait<0>();
    hold(r.out);
    r.end_segment(r.segment, blocks <= segment_blocks, c);

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int const i = row + half * 8;
      if (start + i >= end) continue;
      u32* const to = reinterpret_cast<u32*>(out + rows + static_cast<size_t>(i) * stride);
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        if (n * 8 < in.head_dim)
          to[n * 4 + static_cast<int>(lane_id() % 4)] =
              pack(normalised(r.total[n][2 * half], r.total_sum[half]), normalised(r.total[n][2 * half + 1], r.total_sum[half]));
      if (lse && lane_id() % 4 == 0)
        lse[static_cast<size_t>(at.first + start + i) * in.heads + at.head] =
            __fmaf_rn(r.total_max[half], in.scale, logf(r.total_sum[half]));
    }
  }
}

inline i32* tile_counters(cuda_context& on, size_t count) {
  i32* const counters = scratch_of<i32>(on, count, "attention");
  check(cudaMemsetAsync(counters, 0, count * sizeof(i32), on.stream), "attention");
  return counters;
}
inline attention_input attention_arguments(size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, size_t head_dim,
                                           f32 scale, bf16 const* q, bf16 const* k, bf16 const* v) {
  if (head_dim % 8 || head_dim > 128)
    throw std::runtime_error("attention: head_dim must be a multiple of 8 up to 128 on a GPU, not " + std::to_string(head_dim));
  return {static_cast<int>(sequences),
          static_cast<int>(heads),
          static_cast<int>(kv_heads),
          static_cast<int>(head_dim),
          cu_seqlens,
          scale,
          q,
          k,
          v};
}
template <int D> void launch_attention_forward(cuda_context& on, attention_input const& in, bf16* out, f32* lse) {
  constexpr size_t shared = tile<tile_queries, D>::bytes + 4 * tile<block_keys, D>::bytes;
  static unsigned const grid = resident_blocks(attention_forward<D>, attention_threads, shared);
  i32* const counter = tile_counters(on, 1);
  attention_forward<D><<<grid, attention_threads, shared, on.stream>>>(in, counter, out, lse);
  check_launch("attention");
}
}  // namespace cuda

inline void attention(cuda_context& on, size_t sequences, i32 const* cu_seqlens /*[sequences + 1]*/, size_t heads, size_t kv_heads,
                      size_t head_dim, f32 scale /*positive*/, bf16 const* q /*[tokens, heads, head_dim]*/,
                      bf16 const* k /*[tokens, kv_heads, head_dim]*/, bf16 const* v, bf16* out /*[tokens, heads, head_dim]*/,
                      f32* lse /*[tokens, heads], log of the sum of exp(scores), or null*/) {
  auto const in = cuda::attention_arguments(sequences, cu_seqlens, heads, kv_heads, head_dim, scale, q, k, v);
  head_dim <= 64 ? cuda::launch_attention_forward<64>(on, in, out, lse) : cuda::launch_attention_forward<128>(on, in, out, lse);
}
}  // namespace weft::kernels
#include <weft/kernels/cuda/attention_backward.cuh>
