// paged.hpp (cpu)
#pragma once
#include <cstring>
#include <limits>

#include <weft/kernels/cpu/attention.hpp>
#include <weft/kernels/cpu/f8.hpp>
#include <weft/kernels/paged.hpp>

namespace weft::kernels {
namespace detail {
// rows of (page, layer, key or value, head)
template <class Kv> Kv* page_rows(paged_pool<Kv> const& pool, i32 page, size_t layer, size_t side, size_t head) {
  size_t const index = ((static_cast<size_t>(page) * pool.layers + layer) * 2 + side) * pool.kv_heads + head;
  return pool.data + index * page_tokens * page_row_elements<Kv>(pool.head_dim);
}
template <class Kv> i32 page_of(paged_pool<Kv> const& pool, i32 sequence, size_t block) {
  return pool.table[static_cast<size_t>(sequence) * pool.table_width + block];
}
template <class T> void write_row(size_t head_dim, T const* x, T* row) { std::memcpy(row, x, head_dim * sizeof(T)); }
template <class T> void write_row(size_t head_dim, T const* x, f8e4m3* row) {
  f32 amax = std::numeric_limits<f32>::min();
  bool finite = true;
  for (size_t d = 0; d < head_dim; ++d) {
    f32 const size = std::fabs(static_cast<f32>(x[d]));
    finite = finite && size <= std::numeric_limits<f32>::max();
    amax = size > amax ? size : amax;
  }
  f32 const scale = finite ? amax / 448 : std::numeric_limits<f32>::quiet_NaN();
  for (size_t d = 0; d < head_dim; ++d) row[d] = to_f8e4m3(static_cast<f32>(x[d]) / scale);
  std::memcpy(row + head_dim, &scale, sizeof scale);
}
// a block of rows as T: in place, or unpacked into scratch [64, head_dim]
template <class T> T const* read_rows(size_t, size_t, T const* rows, T*) { return rows; }
template <class T> T const* read_rows(size_t head_dim, size_t count, f8e4m3 const* rows, T* scratch) {
  for (size_t j = 0; j < count; ++j, rows += page_row_elements<f8e4m3>(head_dim)) {
    f32 scale;
    std::memcpy(&scale, rows + head_dim, sizeof scale);
    for (size_t d = 0; d < head_dim; ++d) scratch[j * head_dim + d] = static_cast<T>(from_f8e4m3(rows[d]) * scale);
  }
  return scratch;
}
}  // namespace detail

template <class T, class Kv> void paged_write(cpu_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows, i32 const* sequence,
                                              i32 const* position, T const* k, T const* v) {
  parallel_for(on, rows, 16, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      size_t const p = static_cast<size_t>(position[r]), place = p % page_tokens * page_row_elements<Kv>(pool.head_dim);
      i32 const page = detail::page_of(pool, sequence[r], p / page_tokens);
      for (size_t h = 0; h < pool.kv_heads; ++h) {
        size_t const row = (r * pool.kv_heads + h) * pool.head_dim;
        detail::write_row(pool.head_dim, k + row, detail::page_rows(pool, page, layer, 0, h) + place);
        detail::write_row(pool.head_dim, v + row, detail::page_rows(pool, page, layer, 1, h) + place);
      }
    }
  });
}

template <class T, class Kv> void attention_paged(cpu_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                                  i32 const* sequence, i32 const* position, size_t heads, T scale, T const* q, T* out) {
  constexpr size_t span = 16;  // rows of a task; of these, neighbours in one sequence walk the keys together
  size_t const head_dim = pool.head_dim, group = heads / pool.kv_heads;
  detail::query_block const most = detail::largest_query_block(group);
  parallel_for(on, (rows + span - 1) / span * pool.kv_heads, 1, [=](size_t begin, size_t end) {
    T scratch[2][page_tokens * max_head_dim];
    for (size_t task = begin; task < end; ++task) {
      size_t const kv = task % pool.kv_heads, last = (task / pool.kv_heads + 1) * span < rows ? (task / pool.kv_heads + 1) * span : rows;
      for (size_t r = task / pool.kv_heads * span, next; r < last; r = next) {
        for (next = r + 1;
             next < last && next - r < most.tokens && sequence[next] == sequence[r] && position[next] == position[next - 1] + 1;)
          ++next;
        auto const block = [&](size_t b, size_t count) {
          i32 const page = detail::page_of(pool, sequence[r], b);
          return detail::key_value_block<T>{
              detail::read_rows(head_dim, count, static_cast<Kv const*>(detail::page_rows(pool, page, layer, 0, kv)), scratch[0]),
              detail::read_rows(head_dim, count, static_cast<Kv const*>(detail::page_rows(pool, page, layer, 1, kv)), scratch[1]),
              head_dim};
        };
        for (size_t h = 0; h < group; h += most.heads) {
          size_t const at = (r * heads + kv * group + h) * head_dim;
          detail::query_block const part{next - r, group - h < most.heads ? group - h : most.heads};
          detail::attention_block(part, head_dim, static_cast<size_t>(position[r]), scale, q + at, heads * head_dim, block, out + at,
                                  static_cast<T*>(nullptr), 0);
        }
      }
    }
  });
}
}  // namespace weft::kernels
