// paged_spread.cuh — paged attention where there are so few rows that what counts is how long one of them takes. A block takes a segment: its
// four warps the scores of a page each, then all of the softmax and a quarter of the output's columns. The blocks of a cluster take as many
// segments at a time; they are merged in order from the shared memory of the whole cluster. For sm_90.
//
// In a decode step it takes the layer's projections as they are: every block finishes the queries of its heads, and the newest key and value
// where it needs them. Older keys and values were written in earlier steps, so they are on their way before the kernel in front has ended.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/paged_tile.cuh>
#include <weft/kernels/cuda/projection.cuh>

namespace weft::kernels::cuda {
inline constexpr int spread_warps = 4, spread_threads = spread_warps * 32;
inline constexpr unsigned largest_cluster = 8;
static_assert(spread_warps == segment_blocks, "a page of a segment a warp");

inline __device__ u32 cluster_rank() {
  u32 x = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(x));
#endif
  return x;
}
inline __device__ void cluster_barrier(u32 size) {
#if __CUDA_ARCH__ >= 900
  if (size > 1) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    return;
  }
#endif
  __syncthreads();
}
inline __device__ float4 load_of(u32 address, u32 rank) {  // from the shared memory of a block of the cluster
  float4 x;
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [a];\n}"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(address), "r"(rank)
               : "memory");
#else
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(address) : "memory");
#endif
  return x;
}

// Shared memory: keys and values of a page a warp (its scores, as its threads hold them, take the place of the keys); the segment's output
// [16 rows][D] and their maximum and sum [16][max, sum, -, -]; queries [16][D]; the newest key's and value's row of a page.
template <class Kv, int D> struct spread_layout {
  static constexpr int side = static_cast<int>(page_parts) * page_part<Kv, D>::bytes, newest_row = 2 * D + 16;
  static constexpr int segment_at = spread_warps * 2 * side, rows_at = segment_at + tile_rows * D * 4,
                       queries_at = rows_at + tile_rows * 16, newest_at = queries_at + tile_rows * D * 2,
                       bytes = newest_at + 2 * newest_row;
  static_assert(side >= 32 * 32 * 4, "scores of a page");
};
// row `row` of a part becomes what lies at `from`, a row of a page
template <int D> __device__ void put_row(u32 part, int row, bf16 const* from, int head_dim) {
  int const c = static_cast<int>(lane_id());
  if (c * 8 >= head_dim) return;
  uint4 const x = *reinterpret_cast<uint4 const*>(from + c * 8);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(tile<part_tokens, D>{part}.chunk(row, c)), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}
template <int D> __device__ void put_row(u32 part, int row, f8e4m3 const* from, int head_dim) {
  int const words = head_dim / 4 + 1;
  for (int w = static_cast<int>(lane_id()); w < words; w += 32)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(part + static_cast<u32>((row * words + w) * 4)), "r"(reinterpret_cast<u32 const*>(from)[w])
                 : "memory");
}

// p.qkv null: queries are in.q, and all keys and values in their pages.
template <class Kv, int D, bool whole> __global__ void __launch_bounds__(spread_threads, 1)
    paged_spread_kernel(paged_input<Kv> in, projection p, u32 cluster) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using layout = spread_layout<Kv, D>;
  using part = page_part<Kv, D>;
  next_may_start();
  if (!p.qkv) wait_for_previous();
  int const row = static_cast<int>(blockIdx.x / cluster), lane = static_cast<int>(lane_id()), warp = static_cast<int>(threadIdx.x / 32);
  paged_tile<Kv> tile(in, row, static_cast<int>(blockIdx.y));
  int const tokens = tile.neighbours(in);
  if (!tokens) return wait_for_previous();
  tile.used = tokens * tile.heads;
  int const first_token = in.position[row], last = first_token + tokens - 1, segments = last / segment_keys + 1,
            last_page = last / block_keys;
  int const rank = static_cast<int>(cluster_rank()), step = static_cast<int>(cluster);
  i32 const* const table = in.pool.table + static_cast<size_t>(in.sequence[row]) * in.pool.table_width;
  auto const part_of = [&](int of, int side, int u) {
    return shared_address(shared) + static_cast<u32>((of * 2 + side) * layout::side + u * part::bytes);
  };
  auto const set_out = [&](int side, int segment) {  // this warp's page
    if (int const page = segment * static_cast<int>(segment_pages) + warp; page <= last_page)
      for (u32 u = 0; u < page_parts; ++u)
        part::copy(part_of(warp, side, static_cast<int>(u)), tile.from.rows(table[page], static_cast<u32>(side), u), tile.head_dim);
    copy_commit();
  };
  set_out(0, rank);
  set_out(1, rank);
  auto const scores_of = [&](int of, int n) { return reinterpret_cast<float4*>(shared + of * 2 * layout::side) + n * 32 + lane; };
  float* const result = reinterpret_cast<float*>(shared + layout::segment_at);
  float4* const row_result = reinterpret_cast<float4*>(shared + layout::rows_at);
  bf16* const queries = reinterpret_cast<bf16*>(shared + layout::queries_at);
  auto const newest = [&](int side) { return reinterpret_cast<Kv*>(shared + layout::newest_at + side * layout::newest_row); };
  page_products<Kv, D, whole> products;
  if (p.qkv) {
    wait_for_previous();
    size_t const head_dim = static_cast<size_t>(tile.head_dim), kv_heads = in.pool.kv_heads,
                 kv = blockIdx.y / static_cast<unsigned>(in.slices), part_lane = threadIdx.x % 16;
    bf16 const* const x = p.qkv + static_cast<size_t>(row) * (p.heads + 2 * kv_heads) * head_dim;
    for (int t = static_cast<int>(threadIdx.x / 16); t < (tile.heads + 2 + 1) / 2 * 2; t += spread_threads / 16) {  // both halves of a warp
      using detail::projected;
      projected const kind = t < tile.heads ? projected::query : t == tile.heads ? projected::key : projected::value;
      size_t const head = kind == projected::query ? static_cast<size_t>(tile.first_head + t) : kv, place = kind == projected::query ? head
                                                                                                            : kind == projected::key
                                                                                                                ? p.heads + kv
                                                                                                                : p.heads + kv_heads + kv;
      eight const v = detail::finished(p, x + place * head_dim, kind, head, first_token, head_dim, part_lane);
      if (kind == projected::query) store8<true>(queries + t * D, 8 * part_lane, head_dim, v);
      detail::store_page_row(v, part_lane, head_dim, newest(kind == projected::value), t == tile.heads || t == tile.heads + 1);
    }
    __syncthreads();
    int const g = lane / 4;
    products.load_queries(g < tile.used ? queries + g * D : nullptr, g + 8 < tile.used ? queries + (g + 8) * D : nullptr, tile.head_dim);
    if ((segments - 1) % step == rank && warp < 2) {  // into their page
      Kv* const to = const_cast<Kv*>(tile.from.rows(table[last_page], static_cast<u32>(warp), 0)) +
                     static_cast<size_t>(last % block_keys) * page_row_elements<Kv>(head_dim);
      int const words = static_cast<int>(page_row_elements<Kv>(head_dim) * sizeof(Kv) / 4);
      for (int w = lane; w < words; w += 32) reinterpret_cast<u32*>(to)[w] = reinterpret_cast<u32 const*>(newest(warp))[w];
    }
  } else {
    tile.load_queries(products, in.q);
  }
  float const c = in.scale * log2_e;

  constexpr int shares = D / 32;  // four elements each of the tile, of a thread of a cluster of one
  float4 total[shares];
  float total_max[shares], total_sum[shares];
  for (int begin = 0; begin < segments; begin += step) {
    int const segment = begin + rank, first = segment * static_cast<int>(segment_pages), page = first + warp;
    int const count = min(last_page + 1 - first, static_cast<int>(segment_pages));  // below 1: not this block's
    bool const at_end = page == last_page;
    int const newest_part = last % block_keys / part_tokens, newest_row = last % part_tokens;
    copy_wait<1>();
    __syncwarp();
    if (page <= last_page) {
      if (at_end && p.qkv) put_row<D>(part_of(warp, 0, newest_part), newest_row, newest(0), tile.head_dim), __syncwarp();
      float s[8][4];
      clear(s);
      u32 const parts[page_parts] = {part_of(warp, 0, 0), part_of(warp, 0, 1), part_of(warp, 0, 2), part_of(warp, 0, 3)};
      products.scores(s, parts, tile.head_dim);
      __syncwarp();  // all keys are read
      if (at_end) {
        int const g = lane / 4, last_of_rows[2] = {(first_token + min(g / tile.heads, tokens - 1)) % block_keys,
                                                   (first_token + min((g + 8) / tile.heads, tokens - 1)) % block_keys};
        mask_after(products, last_of_rows, s);
      }
#pragma unroll
      for (int n = 0; n < 8; ++n) *scores_of(warp, n) = {s[n][0], s[n][1], s[n][2], s[n][3]};
    }
    copy_wait<0>();
    __syncwarp();
    if (at_end) {
      if (p.qkv) put_row<D>(part_of(warp, 1, newest_part), newest_row, newest(1), tile.head_dim);
      for (int u = 0; u < static_cast<int>(page_parts); ++u)
        clear_after<Kv, D>(part_of(warp, 1, u), last % block_keys - u * part_tokens, tile.head_dim);
    }
    __syncthreads();
    if (count > 0 && warp < D / 32) {
      float out[4][4], keep[2];
      typename page_products<Kv, D, whole>::units units;
      softmax_rows state;
      clear(out);
      for (int of = 0; of < count; ++of) {
        float s[8][4];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          float4 const x = *scores_of(of, n);
          s[n][0] = x.x, s[n][1] = x.y, s[n][2] = x.z, s[n][3] = x.w;
        }
        softmax_block(s, c, state, keep);
        rescale(out, keep);
#pragma unroll
        for (int u = 0; u < static_cast<int>(page_parts); ++u)
          products.template add_values<1>(out, warp, s[2 * u], s[2 * u + 1], part_of(of, 1, u), tile.head_dim, units);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int const r = lane / 4 + half * 8;
        float const sum = quad_sum(state.sum[half]);
        if (r >= tile.used) continue;
        products.template each<1>(out, warp, half, [=](int i, float x) { result[r * D + i] = units(x); });
        if (warp == 0 && lane % 4 == 0) row_result[r] = {state.max[half], sum, 0, 0};
      }
    }
    cluster_barrier(cluster);
    set_out(0, segment + step);
    set_out(1, segment + step);
#pragma unroll
    for (int i = 0; i < shares; ++i) {
      int const at = (i * step + rank) * spread_threads + static_cast<int>(threadIdx.x), r = at / (D / 4);
      if (r >= tile.used) continue;
      for (int s = 0; s < step && begin + s < segments; ++s) {
        float4 const x = load_of(shared_address(result + at * 4), static_cast<u32>(s)),
                     m = load_of(shared_address(row_result + r), static_cast<u32>(s));
        if (begin + s == 0) {
          total[i] = x, total_max[i] = m.x, total_sum[i] = m.y;
          continue;
        }
        merge_factors const f = merge(total_max[i], total_sum[i], m.x, m.y, c);
        total_max[i] = f.max, total_sum[i] = f.sum;
        total[i] = {merged(f, total[i].x, x.x), merged(f, total[i].y, x.y), merged(f, total[i].z, x.z), merged(f, total[i].w, x.w)};
      }
    }
    cluster_barrier(cluster);
  }
#pragma unroll
  for (int i = 0; i < shares; ++i) {
    int const at = (i * step + rank) * spread_threads + static_cast<int>(threadIdx.x), r = at / (D / 4), d = at % (D / 4) * 4;
    if (r < tile.used && d < tile.head_dim)
      *reinterpret_cast<uint2*>(in.out + tile.place(r) + d) = {
          pack(normalised(total[i].x, total_sum[i]), normalised(total[i].y, total_sum[i])),
          pack(normalised(total[i].z, total_sum[i]), normalised(total[i].w, total_sum[i]))};
  }
}

// False, and nothing done, where rows are not that few.
template <class Kv, int D, bool whole> bool launch_paged_spread(cuda_context& on, paged_input<Kv> const& in, projection const& p = {}) {
  constexpr int shared = spread_layout<Kv, D>::bytes;
  static bool const possible = compiled_for_sm_90(paged_spread_kernel<Kv, D, whole>) && has_shared_memory(shared);
  if (!possible) return false;
  static unsigned const resident = resident_blocks(paged_spread_kernel<Kv, D, whole>, spread_threads, shared);
  unsigned const slices = static_cast<unsigned>(in.slices) * static_cast<unsigned>(in.pool.kv_heads), rows = static_cast<unsigned>(in.rows);
  if (4 * rows * slices > resident) return false;
  unsigned cluster = 1;
  while (cluster < largest_cluster && 2 * cluster * rows * slices <= resident && cluster * segment_pages < in.pool.table_width)
    cluster *= 2;
  launch_chained(on, "attention_paged", paged_spread_kernel<Kv, D, whole>, dim3{rows * cluster, slices, 1}, dim3{spread_threads, 1, 1},
                 shared, cluster, in, p, cluster);
  return true;
}
}  // namespace weft::kernels::cuda
