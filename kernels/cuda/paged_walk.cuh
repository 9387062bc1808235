// paged_walk.cuh — paged attention where there are many rows: a warp walks segments of 256 keys by itself, fed by its ring of page parts.
// The warps of a block take the segments of one tile in turn, and merge them in order into shared memory, each when it is its turn.
//
// Segments that the members of a group share are computed once for all their rows, then each member's own. A tile always multiplies its 16
// rows; of a member's own segment only its rows are kept, and a row's bits do not depend on its neighbours.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/paged_tile.cuh>

namespace weft::kernels::cuda {
inline constexpr int most_walkers = 8;

// Shared memory: a ring a warp; the merged output [16 rows][pitch], their maximum and sum [16][2], a turn a member.
template <class Kv, int D> struct walk_layout {
  static constexpr int pitch = D + 8 /*no bank conflicts*/, ring = page_part<Kv, D>::parts * page_part<Kv, D>::bytes;
  static constexpr int merged = tile_rows * pitch * 4, rows = tile_rows * 8;
  static constexpr int bytes(int warps) { return warps * ring + merged + rows + tile_rows * 4; }
};

// How many segments of a member have been merged; who merges the next one waits for his number.
inline __device__ void turn_wait(u32 turn, int number) {
  int x;
  do asm volatile("ld.acquire.cta.shared.b32 %0, [%1];" : "=r"(x) : "r"(turn) : "memory");
  while (x != number);
}
inline __device__ void turn_pass(u32 turn, int number) {
  asm volatile("st.release.cta.shared.b32 [%0], %1;" ::"r"(turn), "r"(number) : "memory");
}

// What a block has to do, in order: segments shared by all members, then the own ones of member 0, 1, ... Lane m knows of member m.
struct walk_tasks {
  int shared = 0, total = 0;            // of all tasks the first ones are shared
  int sequence = -1, last = -1, start;  // of this lane's member: its last key; the first of its own tasks
  unsigned members = 0;                 // lanes that have one

  template <class Kv> __device__ walk_tasks(paged_input<Kv> const& in, int row, int count, int keys_of_first, int shared_segments)
      : shared(shared_segments), members(count == 32 ? ~0u : (1u << count) - 1) {
    int const lane = static_cast<int>(lane_id());
    if (lane < count) sequence = in.sequence[row + lane], last = keys_of_first ? keys_of_first - 1 : in.position[row + lane];
    int const own = sequence < 0 || last < 0 ? 0 : last / segment_keys + 1 - shared;
    int through = own;
#pragma unroll
    for (int step = 1; step < tile_rows; step *= 2) {
      int const x = __shfl_up_sync(~0u, through, step);
      if (lane >= step) through += x;
    }
    start = shared + through - own;
    total = __shfl_sync(~0u, shared + through, tile_rows - 1);
    if (total == shared) total = 0;  // nobody is left
  }
  struct task {
    int member, segment, sequence, last;  // member -1: shared by all
    __device__ u32 first_page() const { return static_cast<u32>(segment) * segment_pages; }
    __device__ u32 pages() const { return min(static_cast<u32>(last / block_keys + 1) - first_page(), segment_pages); }
  };
  __device__ task operator[](int t) const {  // the whole warp
    bool const alive = (members >> lane_id() & 1) && sequence >= 0 && last >= 0;
    int const member = t < shared ? __ffs(static_cast<int>(__ballot_sync(~0u, alive))) - 1
                                  : 31 - __clz(static_cast<int>(__ballot_sync(~0u, alive && start <= t)));
    task x{t < shared ? -1 : member, 0, __shfl_sync(~0u, sequence, member), __shfl_sync(~0u, last, member)};
    x.segment = t < shared ? t : shared + t - __shfl_sync(~0u, start, member);
    return x;
  }
};
template <class Kv> struct walk_runs {  // the page tables of a warp's tasks
  walk_tasks tasks;
  i32 const* table;  // [sequences, width]
  size_t width;
  int at, step;
  __device__ bool operator()(page_run& run) {
    if (at >= tasks.total) return false;
    auto const task = tasks[at];
    run = {table + static_cast<size_t>(task.sequence) * width + task.first_page(), task.pages()};
    at += step;
    return true;
  }
};

template <class Kv, int D, bool whole> __global__ void __launch_bounds__(most_walkers * 32) paged_walk_kernel(paged_input<Kv> in) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using layout = walk_layout<Kv, D>;
  constexpr int held = page_part<Kv, D>::held, groups = D / 32;
  next_may_start();
  wait_for_previous();
  int const row = static_cast<int>(blockIdx.x), warps = static_cast<int>(blockDim.x / 32), warp = static_cast<int>(threadIdx.x / 32);
  paged_tile<Kv> tile(in, row, static_cast<int>(blockIdx.y));
  int const members = in.groups.members ? in.groups.members[row] : 1, tokens = in.groups.members ? 1 : tile.neighbours(in);
  if (!members || !tokens) return;
  int const g = static_cast<int>(lane_id() / 4), position = in.position[row];
  walk_tasks const tasks(in, row, members, in.groups.members ? 0 : position + tokens, in.groups.members ? in.groups.shared[row] : 0);
  tile.each = tokens * tile.heads, tile.used = members * tile.each;
  float* const output = reinterpret_cast<float*>(shared + warps * layout::ring);
  float2* const row_state = reinterpret_cast<float2*>(shared + warps * layout::ring + layout::merged);  // maximum, sum
  u32 const turns = shared_address(row_state) + layout::rows;
  page_ring<Kv, D, walk_runs<Kv>> ring(tile.from, shared_address(shared) + static_cast<u32>(warp * layout::ring),
                                       walk_runs<Kv>{tasks, in.pool.table, in.pool.table_width, warp, warps});
  if (threadIdx.x < static_cast<unsigned>(members)) turn_pass(turns + threadIdx.x * 4, 0);
  page_products<Kv, D, whole> products;
  tile.load_queries(products, in.q);
  float const c = in.scale * log2_e;
  __syncthreads();
  for (int t = warp; t < tasks.total; t += warps) {
    auto const task = tasks[t];
    float out[D / 8][4], keep[2];
    typename page_products<Kv, D, whole>::units units;
    softmax_rows state;
    clear(out);
    u32 const pages = task.pages();
    bool const ends = task.member >= 0 && task.last / segment_keys == task.segment;  // the member's last
    for (u32 page = 0; page < pages; ++page) {
      bool const at_end = ends && page + 1 == pages;
      float s[8][4];
      clear(s);
#pragma unroll
      for (int u = 0; u < static_cast<int>(page_parts); u += held) {
        u32 part[held];
#pragma unroll
        for (int i = 0; i < held; ++i) part[i] = ring.next();
        products.scores(s + 2 * u, part, tile.head_dim);
      }
      if (at_end) {
        int const first = task.last - (tokens - 1);  // neighbours: of the first token
        int const last_of_rows[2] = {(first + min(g / tile.heads, tokens - 1)) % block_keys,
                                     (first + min((g + 8) / tile.heads, tokens - 1)) % block_keys};
        mask_after(products, last_of_rows, s);
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
          if (at_end) clear_after<Kv, D>(part[i], task.last % block_keys - (u + i) * part_tokens, tile.head_dim);
          products.template add_values<groups>(out, 0, s[2 * (u + i)], s[2 * (u + i) + 1], part[i], tile.head_dim, units);
        }
      }
    }
    u32 const turn = turns + static_cast<u32>(max(task.member, 0) * 4);
    turn_wait(turn, task.segment);
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int const r = g + half * 8;
      float const sum = quad_sum(state.sum[half]);
      float2 const before = row_state[r];
      __syncwarp();
      if (r >= tile.used || (task.member >= 0 && r / tile.each != task.member)) continue;
      float* const to = output + r * layout::pitch;
      if (task.segment == 0) {
        products.template each<groups>(out, 0, half, [=](int i, float x) { to[i] = units(x); });
        if (lane_id() % 4 == 0) row_state[r] = {state.max[half], sum};
      } else {
        merge_factors const f = merge(before.x, before.y, state.max[half], sum, c);
        products.template each<groups>(out, 0, half, [=](int i, float x) { to[i] = merged(f, to[i], units(x)); });
        if (lane_id() % 4 == 0) row_state[r] = {f.max, f.sum};
      }
    }
    __syncwarp();
    if (task.member >= 0 ? lane_id() == 0 : lane_id() < static_cast<u32>(members))
      turn_pass(task.member >= 0 ? turn : turns + lane_id() * 4, task.segment + 1);
    if (!ends) continue;
    int const quads = tile.head_dim / 4;
    for (int at = static_cast<int>(lane_id()); at < tile.each * quads; at += 32) {
      int const r = task.member * tile.each + at / quads, d = at % quads * 4;
      float const* const x = output + r * layout::pitch + d;
      float const all = row_state[r].y;
      *reinterpret_cast<uint2*>(in.out + tile.place(r) + d) = {pack(normalised(x[0], all), normalised(x[1], all)),
                                                               pack(normalised(x[2], all), normalised(x[3], all))};
    }
  }
}

// Members that a group may have: as many as fit a tile, but not so many that processors are left without work.
inline size_t most_page_members(size_t rows, size_t heads, size_t kv_heads) {
  size_t const fit = static_cast<size_t>(tile_rows) * kv_heads / heads,
               busy = rows * kv_heads / static_cast<size_t>(this_card().processors / 8 * 8);
  return fit < 1 || busy < 1 ? 1 : fit < busy ? fit : busy;
}
template <class Kv, int D, bool whole> void launch_paged_walk(cuda_context& on, paged_input<Kv> const& in) {
  auto const bytes = [](int warps) { return static_cast<size_t>(walk_layout<Kv, D>::bytes(warps)); };
  static size_t const resident = [&] {  // warps, on the whole GPU
    unsigned const blocks = resident_blocks(paged_walk_kernel<Kv, D, whole>, 64, bytes(2));
    resident_blocks(paged_walk_kernel<Kv, D, whole>, most_walkers * 32, bytes(most_walkers));  // as much shared memory as that needs
    return size_t{2} * blocks;
  }();
  size_t const rows = static_cast<size_t>(in.rows), slices = static_cast<size_t>(in.slices) * in.pool.kv_heads,
               members = in.groups.members ? most_page_members(rows, static_cast<size_t>(in.heads), in.pool.kv_heads) : 1,
               blocks = (rows + members - 1) / members * slices;
  int warps = 2;
  while (warps < most_walkers && 2 * static_cast<size_t>(warps) * blocks <= resident) warps *= 2;
  launch_chained(on, "attention_paged", paged_walk_kernel<Kv, D, whole>,
                 dim3{static_cast<unsigned>(rows), static_cast<unsigned>(slices), 1}, dim3{static_cast<unsigned>(warps) * 32, 1, 1},
                 bytes(warps), 1, in);
}
}  // namespace weft::kernels::cuda
