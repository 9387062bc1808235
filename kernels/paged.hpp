// paged.hpp — keys and values of running sequences in pages of 64 tokens.
//
// A pool is [pages][layers][2: key, value][kv_heads][64 tokens][row]. Kv = T: a row is head_dim elements. Kv = f8e4m3: head_dim bytes,
// then the f32 scale of this token and head, max(amax, smallest normal) / 448; a row with Inf or NaN has scale NaN, so whatever reads it
// becomes NaN. Token p of a sequence lies in page table[sequence][p / 64], place p % 64. Pages of one sequence may lie anywhere and may be
// shared.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/attention.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
inline constexpr size_t page_tokens = key_block;

template <class Kv> struct paged_pool {
  Kv* data;
  size_t layers, kv_heads, head_dim;
  i32 const* table;  // [sequences, table_width]: page ids
  size_t table_width;
};

template <class Kv> WEFT_HD constexpr size_t page_row_elements(size_t head_dim) { return head_dim; }
template <> WEFT_HD constexpr size_t page_row_elements<f8e4m3>(size_t head_dim) { return head_dim + sizeof(f32); }
template <class Kv> WEFT_HD constexpr size_t page_elements(size_t layers, size_t kv_heads, size_t head_dim) {  // of one page
  return layers * 2 * kv_heads * page_tokens * page_row_elements<Kv>(head_dim);
}

template <class T, class Kv> void paged_write(cpu_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                              i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/,
                                              T const* k /*[rows, kv_heads, head_dim]*/, T const* v);
// Row r sees keys 0..position[r] of its sequence. With Kv = T the bits are those of attention().
template <class T, class Kv> void attention_paged(cpu_context& on, paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                                  i32 const* sequence /*[rows]*/, i32 const* position /*[rows]*/, size_t heads, T scale,
                                                  T const* q /*[rows, heads, head_dim]*/, T* out /*[rows, heads, head_dim]*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/paged.hpp>
