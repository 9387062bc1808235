// kv/copy_page.hpp — the first tokens of one page into another: how a sample gets a page of its own where its prompt ends inside one.
#pragma once
#include <cstring>

#include <weft/kernels/paged.hpp>

namespace weft::kv {
template <class Kv>
void copy_page(kernels::cpu_context&, kernels::paged_pool<Kv> const& pool, i32 from, i32 to, size_t tokens /*at most 64*/) {
  size_t const rows = pool.layers * 2 * pool.kv_heads, row = kernels::page_row_elements<Kv>(pool.head_dim),
               block = kernels::page_tokens * row;
  Kv const* const source = pool.data + size_t(from) * rows * block;
  Kv* const target = pool.data + size_t(to) * rows * block;
  for (size_t i = 0; i < rows; ++i) std::memcpy(target + i * block, source + i * block, tokens * row * sizeof(Kv));
}
}  // namespace weft::kv
