// paged_ring.cuh — pages on their way into a warp: parts of 16 tokens of a page's keys or values, a few of them in flight at all times,
// in a ring in shared memory that belongs to this warp alone. A page passes as keys 0-15, 16-31, 32-47, 48-63, then its values likewise.
#pragma once
#include <weft/kernels/cuda/online_softmax.cuh>
#include <weft/kernels/cuda/tile.cuh>
#include <weft/kernels/paged.hpp>

namespace weft::kernels::cuda {
inline constexpr int part_tokens = 16;
inline constexpr u32 page_parts = 4, segment_pages = segment_blocks;

// One layer and key/value head of a pool, for one sequence.
template <class Kv> struct page_source {
  Kv const* data;     // the rows of (page 0, layer, keys, head)
  size_t page, side;  // elements to the next page, from keys to values
  i32 const* table;   // pages of the sequence
  u32 pages;          // to read
  int last;           // the last token's place in the last page
  int head_dim;
};

// ring: bytes of a warp's ring; held: parts of it that the warp works on at a time.
// bf16 parts are tiles [16, D] as in tile.cuh (zeros beyond head_dim); f8e4m3 parts are the page's bytes, rows of head_dim + 4.
template <class Kv, int D> struct page_part {
  static constexpr int bytes = part_tokens * D * 2, ring = D * 160 /*five*/, held = 1;
  static __device__ void copy(u32 to, Kv const* rows, int head_dim) {
    tile<part_tokens, D> const t{to};
#pragma unroll
    for (int i = 0; i < part_tokens * D / 8 / 32; ++i) {
      int const at = i * 32 + static_cast<int>(lane_id()), row = at / (D / 8), c = at % (D / 8);
      bool const there = c * 8 < head_dim;
      copy_async(t.chunk(row, c), rows + (there ? row * head_dim + c * 8 : 0), there);
    }
  }
  static __device__ void clear_row(u32 part, int row, int) {
    tile<part_tokens, D> const t{part};
    for (int c = static_cast<int>(lane_id()); c < D / 8; c += 32)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(t.chunk(row, c)), "r"(0) : "memory");
  }
};
template <int D> struct page_part<f8e4m3, D> {
  static constexpr int bytes = part_tokens * (D + 4), ring = D * 152 /*nine*/, held = page_parts;
  static __device__ void copy(u32 to, f8e4m3 const* rows, int head_dim) {
    int const chunks = part_tokens * (head_dim + 4) / 16;
#pragma unroll
    for (int i = 0; i < (bytes / 16 + 31) / 32; ++i) {
      int const c = i * 32 + static_cast<int>(lane_id());
      copy_async_if(c < chunks, to + static_cast<u32>(c * 16), rows + c * 16);
    }
  }
  static __device__ void clear_row(u32 part, int row, int head_dim) {
    int const words = head_dim / 4 + 1;
    for (int w = static_cast<int>(lane_id()); w < words; w += 32)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(part + static_cast<u32>((row * words + w) * 4)), "r"(0) : "memory");
  }
};

// Visits segments first, first + step, ... of a sequence, page by page. deep: for a batch so small that what counts is how long a warp waits.
template <class Kv, int D, bool deep> class page_ring {
  static constexpr int bytes_ = page_part<Kv, D>::bytes;

 public:
  static constexpr int room = deep ? D * 384 : page_part<Kv, D>::ring, parts = room / bytes_;    // bytes of a warp's ring
  static constexpr int held = deep && page_part<Kv, D>::held == 1 ? 2 : page_part<Kv, D>::held;  // parts that a warp works on at a time

 private:
  page_source<Kv> from_;
  u32 room_, write_, read_;
  u32 first_, step_, index_ = 0, part_ = 0;
  int ids_ = 0;  // next to set out: page `index_` of this warp's, its part; ids_: a page id a lane

  __device__ u32 page_at(u32 index) const { return (first_ + index / segment_pages * step_) * segment_pages + index % segment_pages; }
  __device__ void set_out() {
    if (part_ == 0 && index_ % 32 == 0) {
      u32 const page = page_at(index_ + lane_id());
      ids_ = page < from_.pages ? from_.table[page] : 0;
    }
    if (page_at(index_) < from_.pages) {
      size_t const id = static_cast<size_t>(__shfl_sync(0xffffffffu, ids_, static_cast<int>(index_ % 32)));
      page_part<Kv, D>::copy(write_,
                             from_.data + id * from_.page + (part_ < page_parts ? 0 : from_.side) +
                                 static_cast<size_t>(part_ % page_parts) * part_tokens * page_row_elements<Kv>(from_.head_dim),
                             from_.head_dim);
      if (++part_ == 2 * page_parts) part_ = 0, ++index_;
    }
    copy_commit();
    write_ = advance(write_);
  }
  __device__ u32 advance(u32 at) const { return at + bytes_ == room_ + parts * bytes_ ? room_ : at + bytes_; }

 public:
  __device__ page_ring(page_source<Kv> const& from, u32 place, u32 first, u32 step)
      : from_(from), room_(place), write_(place), read_(place), first_(first), step_(step) {
    for (int i = 0; i < parts - held; ++i) set_out();
  }
  // The next part has arrived; the one `held` before is given up.
  __device__ u32 next() {
    __syncwarp();
    set_out();
    copy_wait<parts - held>();
    __syncwarp();
    u32 const part = read_;
    read_ = advance(read_);
    return part;
  }
  // Values after the last token may be anything; p = 0 times them must be 0.
  __device__ void clear_after(u32 part, int token /*the last in this part, may be below 0*/) const {
    for (int row = max(token + 1, 0); row < part_tokens; ++row) page_part<Kv, D>::clear_row(part, row, from_.head_dim);
    __syncwarp();
  }
};
}  // namespace weft::kernels::cuda
