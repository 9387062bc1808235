// paged_ring.cuh — pages on their way into a warp: parts of 16 tokens of a page's keys or values, a few of them in flight at all times,
// in a ring in shared memory that belongs to this warp alone. A page passes as keys 0-15, 16-31, 32-47, 48-63, then its values likewise.
#pragma once
#include <weft/kernels/cuda/online_softmax.cuh>
#include <weft/kernels/cuda/tile.cuh>
#include <weft/kernels/paged.hpp>

namespace weft::kernels::cuda {
inline constexpr int part_tokens = 16;
inline constexpr u32 page_parts = 4, segment_pages = segment_blocks;

// One layer and key/value head of a pool.
template <class Kv> struct page_source {
  Kv const* data;     // the rows of (page 0, layer, keys, head)
  size_t page, side;  // elements to the next page, from keys to values
  int head_dim;

  // side 0: keys, 1: values; 16 tokens from part * 16 on
  __device__ Kv const* rows(int id, u32 values, u32 part) const {
    return data + static_cast<size_t>(id) * page + (values ? side : 0) +
           static_cast<size_t>(part) * part_tokens * page_row_elements<Kv>(head_dim);
  }
};
// Pages of a sequence that belong together: those of a segment, four at most.
struct page_run {
  i32 const* table;  // the first one's place in the page table
  u32 pages;
};

// parts: of a warp's ring; held: parts of it that the warp works on at a time.
// bf16 parts are tiles [16, D] as in tile.cuh (zeros beyond head_dim); f8e4m3 parts are the page's bytes, rows of head_dim + 4.
template <class Kv, int D> struct page_part {
  static constexpr int bytes = part_tokens * D * 2, parts = 5, held = 1;
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
  static constexpr int bytes = part_tokens * (D + 4), parts = 11, held = page_parts;
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

// A warp's way through runs of pages, page by page; Next(run) gives the next run, or false.
template <class Kv, int D, class Next> class page_ring {
  static constexpr int bytes_ = page_part<Kv, D>::bytes, parts = page_part<Kv, D>::parts, held = page_part<Kv, D>::held;

 public:
  static constexpr int room = parts * bytes_;  // bytes of a warp's ring

 private:
  page_source<Kv> from_;
  Next next_run_;
  u32 room_, write_, read_;
  // next to set out: page `page_` of a run, its part; ids: a page a lane, of this run and of the one after it
  u32 page_ = 0, pages_ = 0, part_ = 0, pages_after_ = 0;
  int ids_ = 0, ids_after_ = 0;

  __device__ void look_ahead() {
    page_run run{};
    pages_after_ = next_run_(run) ? run.pages : 0;
    if (lane_id() < pages_after_) ids_after_ = run.table[lane_id()];
  }
  __device__ void set_out() {
    if (page_ < pages_) {
      int const id = __shfl_sync(0xffffffffu, ids_, static_cast<int>(page_));
      page_part<Kv, D>::copy(write_, from_.rows(id, part_ / page_parts, part_ % page_parts), from_.head_dim);
      if (++part_ == 2 * page_parts) {
        part_ = 0;
        if (++page_ == pages_) {
          page_ = 0, pages_ = pages_after_, ids_ = ids_after_;
          look_ahead();
        }
      }
    }
    copy_commit();
    write_ = advance(write_);
  }
  __device__ u32 advance(u32 at) const { return at + bytes_ == room_ + parts * bytes_ ? room_ : at + bytes_; }

 public:
  __device__ page_ring(page_source<Kv> const& from, u32 place, Next const& next)
      : from_(from), next_run_(next), room_(place), write_(place), read_(place) {
    look_ahead();
    pages_ = pages_after_, ids_ = ids_after_;
    look_ahead();
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
};
// Values after the last token may be anything; p = 0 times them must be 0.
template <class Kv, int D> __device__ void clear_after(u32 part, int token /*the last in this part, may be below 0*/, int head_dim) {
  for (int row = max(token + 1, 0); row < part_tokens; ++row) page_part<Kv, D>::clear_row(part, row, head_dim);
  __syncwarp();
}
}  // namespace weft::kernels::cuda
