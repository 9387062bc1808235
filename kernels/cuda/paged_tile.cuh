// paged_tile.cuh — which rows of a step with pages are computed together: up to 16, since a tensor core multiplies 16 at a time. A tile is the
// query heads of a key/value head (a slice of them where there are more), of neighbouring tokens of a sequence as far as they fit, or of
// the members of a group: sequences that begin with the same pages.
#pragma once
#include <weft/kernels/cuda/page_products.cuh>

namespace weft::kernels {
// Rows of sequences that begin with the same pages, one behind the other. members null: no groups.
struct page_groups {
  i32 const* members = nullptr;  // [rows]: of the group that begins with this row, else 0
  i32 const* shared = nullptr;   // [rows]: segments of 256 keys that all members of that group have in the same pages
};

namespace cuda {
inline constexpr int tile_rows = 16;

template <class Kv> struct paged_input {
  paged_pool<Kv> pool;
  size_t layer;
  int rows, heads;
  i32 const *sequence, *position;  // [rows]; below 0: no token
  float scale;
  bf16 const* q;  // [rows, heads, head_dim]
  bf16* out;      // the same
  int slices;     // of the query heads of a key/value head: 16 at most each
  page_groups groups;
};

template <class Kv> struct paged_tile {
  int row = 0, first_head = 0, heads = 0, used = 0 /*rows of the tile*/, each = 0 /*rows of a member*/;
  int head_dim = 0, all_heads = 0;
  page_source<Kv> from{};

  __device__ paged_tile(paged_input<Kv> const& in, int at_row, int slice)
      : row(at_row), head_dim(static_cast<int>(in.pool.head_dim)), all_heads(in.heads) {
    int const kv_heads = static_cast<int>(in.pool.kv_heads), group = in.heads / kv_heads, kv = slice / in.slices;
    first_head = kv * group + slice % in.slices * tile_rows, heads = min(tile_rows, group - slice % in.slices * tile_rows);
    size_t const rows_of_page = page_tokens * page_row_elements<Kv>(in.pool.head_dim);
    from.side = in.pool.kv_heads * rows_of_page,
    from.data = in.pool.data + (in.layer * 2 * in.pool.kv_heads + static_cast<size_t>(kv)) * rows_of_page;
    from.page = page_elements<Kv>(in.pool.layers, in.pool.kv_heads, in.pool.head_dim), from.head_dim = head_dim;
  }
  // Tokens of the sequence from this row on that are one tile; 0: no token, or part of the tile of the row before.
  __device__ int neighbours(paged_input<Kv> const& in) const {
    int const group = in.heads / static_cast<int>(in.pool.kv_heads);
    int const tokens = 1 << (31 - __clz(tile_rows / min(tile_rows, group)));  // a power of two, aligned, so in one page
    auto const follows = [&](int r) {
      return r > 0 && in.sequence[r] == in.sequence[r - 1] && in.position[r] == in.position[r - 1] + 1 && in.position[r] % tokens != 0;
    };
    if (in.sequence[row] < 0 || in.position[row] < 0 || follows(row)) return 0;
    int count = 1;
    while (count < tokens && row + count < in.rows && follows(row + count)) ++count;
    return count;
  }
  __device__ size_t place(int i) const {  // row i of the tile in q and out
    return (static_cast<size_t>(row + i / heads) * static_cast<size_t>(all_heads) + static_cast<size_t>(first_head + i % heads)) *
           static_cast<size_t>(head_dim);
  }
  template <int D, bool whole> __device__ void load_queries(page_products<Kv, D, whole>& products, bf16 const* q) const {
    int const g = static_cast<int>(lane_id() / 4);
    products.load_queries(g < used ? q + place(g) : nullptr, g + 8 < used ? q + place(g + 8) : nullptr, head_dim);
  }
};
// Scores of a page that a row may not see: keys behind `last` of rows g and g + 8.
template <class Products> __device__ void mask_after(Products const& products, int const (&last)[2], float (&s)[8][4]) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (n / 2 * part_tokens + products.key(j % 2, n % 2) > last[j / 2]) s[n][j] = -INFINITY;
}
}  // namespace cuda
}  // namespace weft::kernels
