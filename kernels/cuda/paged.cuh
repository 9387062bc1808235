// paged.cuh — keys and values in pages, on a GPU; see paged.hpp. A row whose sequence or position is below 0 stands for no token.
//
// A warp walks a segment of 256 keys by itself, fed by its ring of page parts, for 16 rows: the query heads of a key/value head, and
// neighbouring tokens of a sequence as far as they fit. Four warps take four segments; a cluster of blocks more at a time when the batch
// is small. Segments are merged in order from shared memory (that of the whole cluster), so the bits depend on neither and are those of
// attention().
#pragma once
#include <type_traits>
#include <weft/kernels/cuda/attention.cuh>
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/f8.cuh>
#include <weft/kernels/cuda/page_products.cuh>

namespace weft::kernels {
namespace cuda {
inline constexpr int paged_warps = 4, paged_threads = paged_warps * 32, tile_rows = 16, largest_cluster = 8;

template <class Kv> struct paged_input {
  paged_pool<Kv> pool;
  size_t layer;
  int rows, heads;
  i32 const *sequence, *position;  // [rows]
  float scale;
  bf16 const* q;  // [rows, heads, head_dim]
  bf16* out;
  int slices;  // of the query heads of a key/value head: 16 at most each
};

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

// Shared memory: a ring a warp; then a finished segment a warp: [16 rows][D] and [16 rows][max, sum, -, -].
template <class Kv, int D, bool deep> struct paged_layout {
  static constexpr int ring = page_ring<Kv, D, deep>::room, rings = paged_warps * ring, segment = tile_rows * D * 4, row = tile_rows * 16,
                       bytes = rings + paged_warps * (segment + row);
};

// This block's segment of every round, in `part` order; f(segment) after the warp has left its result in shared memory.
template <class Kv, int D, bool whole, bool deep> __device__ void walk_segment(page_ring<Kv, D, deep>& ring, page_products<Kv, D, whole> const& products,
                                                                    page_source<Kv> const& from, int segment, int used /*rows*/,
                                                                    int const (&last)[2] /*place of rows g and g + 8 in the last page*/,
                                                                    float c, float* result, float4* row_result) {
  constexpr int held = page_ring<Kv, D, deep>::held;
  float out[D / 8][4], keep[2];
  typename page_products<Kv, D, whole>::units units;
  softmax_rows state;
  clear(out);
  u32 const first = static_cast<u32>(segment) * segment_pages, end = min(from.pages, first + segment_pages);
  for (u32 page = first; page < end; ++page) {
    bool const at_end = page + 1 == from.pages;
    float s[8][4];
    clear(s);
#pragma unroll
    for (int u = 0; u < static_cast<int>(page_parts); u += held) {
      u32 part[held];
#pragma unroll
      for (int i = 0; i < held; ++i) part[i] = ring.next();
      products.scores(s + 2 * u, part, from.head_dim);
    }
    if (at_end) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (n / 2 * part_tokens + products.key(j % 2, n % 2) > last[j / 2]) s[n][j] = -INFINITY;
    }
    softmax_block(s, c, state, keep);
    rescale(out, keep);
#pragma unroll
    for (int u = 0; u < static_cast<int>(page_parts); u += held) {
      u32 part[held];
#pragma unroll
      for (int i = 0; i < held; ++i) part[i] = ring.next();
#pragma unroll
      for (int i = 0; i < held; ++i) {
        if (at_end) ring.clear_after(part[i], from.last - (u + i) * part_tokens);
        products.add_values(out, s[2 * (u + i)], s[2 * (u + i) + 1], part[i], from.head_dim, units);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int const row = static_cast<int>(lane_id() / 4) + half * 8;
    float const sum = quad_sum(state.sum[half]);
    if (row >= used) continue;
    products.each_pair(out, half, [=](int i, float x) { result[row * D + i] = units(x); });
    if (lane_id() % 4 == 0) row_result[row] = {state.max[half], sum, 0, 0};
  }
}

template <class Kv, int D, bool whole, bool deep> __global__ void __launch_bounds__(paged_threads, deep ? 1 : sizeof(Kv) == 1 && D == 64 ? 3 : 2)
    attention_paged_kernel(paged_input<Kv> in, u32 cluster) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using layout = paged_layout<Kv, D, deep>;
  next_may_start();
  wait_for_previous();
  int const head_dim = static_cast<int>(in.pool.head_dim), kv_heads = static_cast<int>(in.pool.kv_heads), group = in.heads / kv_heads;
  int const row = static_cast<int>(blockIdx.x / cluster), kv = static_cast<int>(blockIdx.y) / in.slices;
  int const first_head = static_cast<int>(blockIdx.y) % in.slices * tile_rows, heads = min(tile_rows, group - first_head);
  int const tokens = 1 << (31 - __clz(tile_rows / min(tile_rows, group)));  // of a tile: a power of two, aligned, so in one page
  auto const follows = [&](int r) {                                         // row r belongs to the tile of the row before
    return r > 0 && in.sequence[r] == in.sequence[r - 1] && in.position[r] == in.position[r - 1] + 1 && in.position[r] % tokens != 0;
  };
  int const sequence = in.sequence[row], position = in.position[row];
  if (sequence < 0 || position < 0 || follows(row)) return;
  int count = 1;
  while (count < tokens && row + count < in.rows && follows(row + count)) ++count;

  int const used = count * heads, last = position + count - 1, segments = last / segment_keys + 1;
  size_t const side = static_cast<size_t>(kv_heads) * page_tokens * page_row_elements<Kv>(head_dim),
               base = (in.layer * 2 * kv_heads + kv) * page_tokens * page_row_elements<Kv>(head_dim);
  page_source<Kv> const from{in.pool.data + base,
                             page_elements<Kv>(in.pool.layers, kv_heads, head_dim),
                             side,
                             in.pool.table + static_cast<size_t>(sequence) * in.pool.table_width,
                             static_cast<u32>(last / block_keys + 1),
                             last % block_keys,
                             head_dim};
  auto const place = [&](int i) {  // row i of the tile in q and out
    return (static_cast<size_t>(row + i / heads) * in.heads + kv * group + first_head + i % heads) * head_dim;
  };
  int const warp = static_cast<int>(threadIdx.x / 32), rank = static_cast<int>(cluster_rank()),
            step = paged_warps * static_cast<int>(cluster);
  page_ring<Kv, D, deep> ring(from, shared_address(shared) + static_cast<u32>(warp * layout::ring), static_cast<u32>(rank * paged_warps + warp),
                        static_cast<u32>(step));
  page_products<Kv, D, whole> products;
  int const g = static_cast<int>(lane_id() / 4);
  products.load_queries(g < used ? in.q + place(g) : nullptr, g + 8 < used ? in.q + place(g + 8) : nullptr, head_dim);
  int const last_of_rows[2] = {(position + min(g / heads, count - 1)) % block_keys,
                               (position + min((g + 8) / heads, count - 1)) % block_keys};
  float const c = in.scale * log2_e;
  float* const results = reinterpret_cast<float*>(shared + layout::rings);                                        // [warps][16][D]
  float4* const row_results = reinterpret_cast<float4*>(shared + layout::rings + paged_warps * layout::segment);  // [warps][16]

  constexpr int shares = D / 32;  // four elements each of the tile, of a thread of a cluster of one
  float4 total[shares];
  float total_max[shares], total_sum[shares];
  for (int begin = 0; begin < segments; begin += step) {
    int const segment = begin + rank * paged_warps + warp;
    if (segment < segments)
      walk_segment<Kv, D, whole, deep>(ring, products, from, segment, used, last_of_rows, c, results + warp * tile_rows * D,
                                 row_results + warp * tile_rows);
    cluster_barrier(cluster);
#pragma unroll
    for (int i = 0; i < shares; ++i) {
      int const at = (i * static_cast<int>(cluster) + rank) * paged_threads + static_cast<int>(threadIdx.x), r = at / (D / 4);
      if (r >= used) continue;
      for (int s = 0; s < step && begin + s < segments; ++s) {
        u32 const owner = static_cast<u32>(s / paged_warps);
        int const slot = s % paged_warps * tile_rows;
        float4 const x = load_of(shared_address(results + slot * D + at * 4), owner),
                     m = load_of(shared_address(row_results + slot + r), owner);
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
    int const at = (i * static_cast<int>(cluster) + rank) * paged_threads + static_cast<int>(threadIdx.x), r = at / (D / 4),
              d = at % (D / 4) * 4;
    if (r < used && d < head_dim)
      *reinterpret_cast<uint2*>(in.out + place(r) + d) = {pack(normalised(total[i].x, total_sum[i]), normalised(total[i].y, total_sum[i])),
                                                          pack(normalised(total[i].z, total_sum[i]), normalised(total[i].w, total_sum[i]))};
  }
}

template <class Kv, int D, bool whole, bool deep> bool launch_attention_paged(cuda_context& on, paged_input<Kv> const& in) {
  constexpr int shared = paged_layout<Kv, D, deep>::bytes;
  static unsigned const resident = resident_blocks(attention_paged_kernel<Kv, D, whole, deep>, paged_threads, shared);
  static bool const clusters = compiled_for_sm_90(attention_paged_kernel<Kv, D, whole, deep>);
  unsigned const slices = static_cast<unsigned>(in.slices) * static_cast<unsigned>(in.pool.kv_heads), rows = static_cast<unsigned>(in.rows);
  unsigned cluster = 1;
  while (clusters && cluster < largest_cluster && 2 * cluster * rows * slices <= resident &&
         cluster * paged_warps * segment_pages < in.pool.table_width)
    cluster *= 2;
  if (deep && 2 * rows * slices > resident) return false;
  launch_chained(on, "attention_paged", attention_paged_kernel<Kv, D, whole, deep>, dim3{rows * cluster, slices, 1}, dim3{paged_threads, 1, 1}, shared,
                 cluster, in, cluster);
  return true;
}

inline __device__ void write_page_row(int head_dim, bf16 const* x, bf16* row) {
  for (int i = static_cast<int>(lane_id()) * 4; i < head_dim; i += 128)
    *reinterpret_cast<uint2*>(row + i) = *reinterpret_cast<uint2 const*>(x + i);
}
inline __device__ void write_page_row(int head_dim, bf16 const* x, f8e4m3* row) {
  float most = 0x1p-126f;
  bool finite = true;
  for (int i = static_cast<int>(lane_id()); i < head_dim; i += 32) {
    float const size = fabsf(to_f32(x[i]));
    finite = finite && size < INFINITY;
    most = fmaxf(most, size);
  }
#pragma unroll
  for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  float const scale = __all_sync(0xffffffffu, finite) ? __fdiv_rn(most, 448.0f) : __uint_as_float(0x7fc00000u);
  for (int i = static_cast<int>(lane_id()); i < head_dim; i += 32) row[i] = detail::f32_to_f8(__fdiv_rn(to_f32(x[i]), scale));
  if (lane_id() == 0) *reinterpret_cast<float*>(row + head_dim) = scale;
}
// A warp a row, key/value head and side.
template <class Kv> __global__ void __launch_bounds__(256)
    paged_write_kernel(paged_pool<Kv> pool, size_t layer, size_t rows, i32 const* sequence, i32 const* position, bf16 const* k,
                       bf16 const* v) {
  size_t const at = blockIdx.x * size_t{8} + threadIdx.x / 32, side = at % 2, head = at / 2 % pool.kv_heads, row = at / 2 / pool.kv_heads;
  if (row >= rows || sequence[row] < 0 || position[row] < 0) return;
  size_t const p = static_cast<size_t>(position[row]),
               page = static_cast<size_t>(pool.table[static_cast<size_t>(sequence[row]) * pool.table_width + p / page_tokens]);
  size_t const to = (((page * pool.layers + layer) * 2 + side) * pool.kv_heads + head) * page_tokens + p % page_tokens;
  write_page_row(static_cast<int>(pool.head_dim), (side ? v : k) + (row * pool.kv_heads + head) * pool.head_dim,
                 pool.data + to * page_row_elements<Kv>(pool.head_dim));
}
}  // namespace cuda

template <class Kv> void paged_write(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                     i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/,
                                     bf16 const* k /*[rows, kv_heads, head_dim]*/, bf16 const* v) {
  if (!rows) return;
  cuda::paged_write_kernel<<<static_cast<unsigned>((rows * pool.kv_heads * 2 + 7) / 8), 256, 0, on.stream>>>(pool, layer, rows, sequence,
                                                                                                             position, k, v);
  check_launch("paged_write");
}
template <class Kv> void attention_paged(cuda_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                         i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/, size_t heads, f32 scale,
                                         bf16 const* q /*[rows, heads, head_dim]*/, bf16* out /*[rows, heads, head_dim]*/) {
  if (!rows) return;
  size_t const head_dim = pool.head_dim, group = heads / pool.kv_heads;
  if (head_dim % 8 || head_dim > 128)
    throw std::runtime_error("attention_paged: head_dim must be a multiple of 8 up to 128 on a GPU, not " + std::to_string(head_dim));
  cuda::paged_input<Kv> const in{pool,
                                 layer,
                                 static_cast<int>(rows),
                                 static_cast<int>(heads),
                                 sequence,
                                 position,
                                 scale,
                                 q,
                                 out,
                                 static_cast<int>((group + cuda::tile_rows - 1) / cuda::tile_rows)};
  bool const whole = std::is_same_v<Kv, bf16> || head_dim % 64 == 0;  // rows of bf16 are filled up on their way
  auto const launch = [&]<int D, bool fills>() {
    static bool const roomy = cuda::has_shared_memory(cuda::paged_layout<Kv, D, true>::bytes);
    if (!roomy || !cuda::launch_attention_paged<Kv, D, fills, true>(on, in)) cuda::launch_attention_paged<Kv, D, fills, false>(on, in);
  };
  if (whole) return head_dim <= 64 ? launch.template operator()<64, true>() : launch.template operator()<128, true>();
  if constexpr (std::is_same_v<Kv, f8e4m3>)
    head_dim <= 64 ? launch.template operator()<64, false>() : launch.template operator()<128, false>();
}
}  // namespace weft::kernels
