// decode.cuh — what happens between two decode steps, without the host: a drawn token becomes the next step's input, and the outputs grow.
#pragma once
#include <weft/kernels/cuda/paged.cuh>
#include <weft/kernels/cuda/sampling.cuh>

namespace weft::kernels {
// The rows of a decode step, one for each running sample; a row without one has sample, sequence, id and position -1. Arrays of [rows].
struct decode_rows {
  i32 *ids, *positions, *sequence;
  i32 *sample, *produced, *most, *least;  // index among all samples; tokens of its response; the most and the fewest that it may have
  i32* reason;                            // rollout::finish of a sample that ended here, else 0
  draw_counter* counter;
  sampling* how;
  token_rules* rules;  // or null: nothing is ruled
  drawn<f32>* draws;
  i32 *members, *shared;  // of page_groups
};
struct decode_outputs {  // of all samples, [samples, capacity] and [samples]
  i32* ids;
  f32 *log_probs, *log_kept, *entropies;
  i32 *lengths, *reasons;
  size_t capacity;
};
// Reasons, as rollout::finish numbers them.
inline constexpr i32 ended_by_length = 1, ended_aborted = 3, ended_by_stop_id = 16;

namespace detail {
static __global__ void __launch_bounds__(128)
    advance_kernel(size_t rows, decode_rows r, decode_outputs out, i32 const* stop_ids, i32 stop_count) {
  next_may_start();
  wait_for_previous();
  size_t const i = size_t{blockIdx.x} * 128 + threadIdx.x;
  if (i >= rows || r.sample[i] < 0) return;
  i32 const sample = r.sample[i], at = r.produced[i];
  drawn<f32> const t = r.draws[i];
  size_t const cell = static_cast<size_t>(sample) * out.capacity + static_cast<size_t>(at);
  i32 reason = 0, length = at;
  if (t.id < 0) {
    reason = ended_aborted;
  } else {
    out.ids[cell] = t.id, out.log_probs[cell] = t.log_prob, out.log_kept[cell] = t.log_kept, out.entropies[cell] = t.entropy;
    length = at + 1;
    for (i32 k = 0; k < stop_count && !reason; ++k)
      if (stop_ids[k] == t.id) reason = ended_by_stop_id + k;
    if (!reason && length >= r.most[i]) reason = ended_by_length;
  }
  r.produced[i] = length;
  out.lengths[sample] = length, out.reasons[sample] = reason;
  if (reason) {
    r.reason[i] = reason;
    r.ids[i] = r.positions[i] = r.sequence[i] = r.sample[i] = -1;
  } else {
    r.ids[i] = t.id, ++r.positions[i];
    r.counter[i].position = static_cast<u32>(length);
    if (r.rules) r.rules[i].forbidden_count = length < r.least[i] ? stop_count : 0;
  }
}
// copies[c]: from page, to page, tokens. Block (i, c): row block i of [layers, 2, kv_heads].
static __global__ void __launch_bounds__(128) copy_pages_kernel(i32 const* copies, size_t row_bytes, size_t page_bytes, char* pool) {
  i32 const* const c = copies + 3 * blockIdx.y;
  size_t const block = page_tokens * row_bytes, at = blockIdx.x * block, bytes = static_cast<size_t>(c[2]) * row_bytes;
  char const* const from = pool + static_cast<size_t>(c[0]) * page_bytes + at;
  char* const to = pool + static_cast<size_t>(c[1]) * page_bytes + at;
  for (size_t i = 4 * threadIdx.x; i < bytes; i += 512) *reinterpret_cast<u32*>(to + i) = *reinterpret_cast<u32 const*>(from + i);
}
}  // namespace detail

inline void advance(cuda_context& on, size_t rows, decode_rows const& r, decode_outputs const& out, i32 const* stop_ids, i32 stop_count) {
  launch_chained(on, "advance", detail::advance_kernel, blocks_of(rows, 128), 128, 0, 1, rows, r, out, stop_ids, stop_count);
}
template <class Kv> void copy_pages(cuda_context& on, paged_pool<Kv> const& pool, size_t count, i32 const* copies /*[count, 3]*/) {
  if (!count) return;
  size_t const row = page_row_elements<Kv>(pool.head_dim) * sizeof(Kv), blocks = pool.layers * 2 * pool.kv_heads;
  detail::copy_pages_kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(count)), 128, 0, on.stream>>>(
      copies, row, blocks * page_tokens * row, reinterpret_cast<char*>(pool.data));
  check_launch("copy_pages");
}
}  // namespace weft::kernels
