// attention_backward.hpp (cpu) — with P = exp(S - lse), D = rowsum(dO * O): dV = P^T dO, dS = P (dO V^T - D) scale, dQ = dS K, dK = dS^T Q
// (Dao et al., "FlashAttention", 2022). A thread takes a sequence and a key/value head: blocks of keys in order, and for each the query
// blocks that see it in order, so that every sum has one order.
#pragma once
#include <weft/kernels/cpu/attention.hpp>

namespace weft::kernels {
namespace detail {
// to[count, width] += p^T rows: p [n, 64], rows [n, width]
template <class T> void add_transposed(size_t count, size_t n, size_t width, T const* p, T const* rows, T* to) {
  strips<T> const strip(count);
  for (size_t s = 0; s < strip.count; ++s)
    for (size_t d = 0; d < width; d += tile_shape<T>::columns)
      tile_of<T>(strip.size(s))(n, p + strip.begin(s), key_block, rows + d, width, to + strip.begin(s) * width + d, width, true);
}
// p and ds of one row from its scores (p) and dO V^T (ds); both 0 beyond its last key
template <class T> void attention_slopes(size_t count, T lse, T delta, T scale, T* p /*[64]*/, T* ds /*[64]*/) {
  for (size_t j = count; j < key_block; ++j) p[j] = -infinity<T>, ds[j] = 0;
  for (size_t j = 0; j < key_block; j += lanes<T>) {
    vec<T> const x = exp(load(p + j) - broadcast(lse));
    store(p + j, x);
    store(ds + j, x * (load(ds + j) - broadcast(delta)) * broadcast(scale));
  }
}

// A block of keys. k, v: as right operands; k_rows: [64, width]; the sums dk, dv: [64, width].
template <class T> struct key_gradients {
  size_t count;  // keys of the block
  alignas(64) T k[key_block * max_head_dim + lanes<T>], v[key_block * max_head_dim + lanes<T>], k_rows[key_block * max_head_dim];
  alignas(64) T dk[key_block * max_head_dim], dv[key_block * max_head_dim];
};
// Room for a query block.
template <class T> struct query_room {
  alignas(64) T x[query_rows * max_head_dim], packed_q[query_rows * max_head_dim + lanes<T>],
      packed_d[query_rows * max_head_dim + lanes<T>];
  alignas(64) T d[query_rows * max_head_dim], p[query_rows * key_block], ds[query_rows * key_block];
};
// Adds what a query block contributes to dk, dv and its own dq (written if these are its first keys).
template <class T> void attention_block_backward(key_gradients<T>& keys, query_room<T>& room, query_block rows, size_t head_dim,
                                                 size_t before /*keys of the block before the first token*/, T scale, T const* q,
                                                 T const* out, T const* dout, size_t stride, T const* lse, size_t lse_stride, T* dq,
                                                 bool first) {
  size_t const width = round_up(head_dim, tile_shape<T>::columns), n = rows.rows();
  T *const x = room.x, *const packed_q = room.packed_q, *const packed_d = room.packed_d, *const d = room.d, *const p = room.p,
           *const ds = room.ds;
  strips<T> const strip(n);
  copy_queries(rows, head_dim, width, dout, stride, T(1), d);
  pack_strips(strip, head_dim, width, d, packed_d);
  copy_queries(rows, head_dim, width, q, stride, scale, x);
  pack_strips(strip, head_dim, width, x, packed_q);
  for (size_t s = 0; s < strip.count; ++s) {
    scores(strip.size(s), keys.count, head_dim, packed_q + strip.begin(s) * head_dim, keys.k, p + strip.begin(s) * key_block);
    scores(strip.size(s), keys.count, head_dim, packed_d + strip.begin(s) * head_dim, keys.v, ds + strip.begin(s) * key_block);
  }
  for (size_t r = 0; r < n; ++r) {
    size_t const t = r / rows.heads, at = t * stride + r % rows.heads * head_dim, end = before + t + 1;
    vec<T> delta{};
    each_vector<T>(head_dim, [&](size_t i, auto part) { delta = fma(part.load(out + at + i), part.load(d + r * width + i), delta); });
    attention_slopes(end < keys.count ? end : keys.count, lse[t * lse_stride + r % rows.heads], sum_of<T>(delta), scale, p + r * key_block,
                     ds + r * key_block);
  }
  add_transposed(keys.count, n, width, p, d, keys.dv);
  copy_queries(rows, head_dim, width, q, stride, T(1), x);
  add_transposed(keys.count, n, width, ds, x, keys.dk);

  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < width; ++i)
      x[r * width + i] = first || i >= head_dim ? T(0) : dq[r / rows.heads * stride + r % rows.heads * head_dim + i];
  for (size_t s = 0; s < strip.count; ++s)
    for (size_t i = 0; i < width; i += tile_shape<T>::columns)
      tile_of<T, key_block>(strip.size(s))(keys.count, ds + strip.begin(s) * key_block, 0, keys.k_rows + i, width,
                                           x + strip.begin(s) * width + i, width, true);
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < head_dim; ++i) dq[r / rows.heads * stride + r % rows.heads * head_dim + i] = x[r * width + i];
}
}  // namespace detail

template <class T> void attention_backward(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads,
                                           size_t head_dim, T scale, T const* q, T const* k, T const* v, T const* out, T const* lse,
                                           T const* dout, T* dq, T* dk, T* dv) {
  size_t const group = heads / kv_heads, stride = heads * head_dim, kv_stride = kv_heads * head_dim,
               width = detail::round_up(head_dim, detail::tile_shape<T>::columns);
  detail::query_block const most = detail::largest_query_block(group);
  parallel_for(on, sequences * kv_heads, 1, [=](size_t begin, size_t end) {
    detail::key_gradients<T> keys;
    detail::query_room<T> room;
    for (size_t task = begin; task < end; ++task) {
      size_t const first = static_cast<size_t>(cu_seqlens[task / kv_heads]),
                   length = static_cast<size_t>(cu_seqlens[task / kv_heads + 1]) - first;
      size_t const kv = task % kv_heads;
      for (size_t j = 0; j < length; j += key_block) {
        size_t const at = (first + j) * kv_stride + kv * head_dim;
        keys.count = length - j < key_block ? length - j : key_block;
        detail::pack_panels(keys.count, head_dim, k + at, kv_stride, keys.k);
        detail::pack_panels(keys.count, head_dim, v + at, kv_stride, keys.v);
        detail::copy_rows(keys.count, head_dim, width, k + at, kv_stride, keys.k_rows);
        for (size_t i = 0; i < keys.count * width; ++i) keys.dk[i] = keys.dv[i] = 0;
        for (size_t t = j; t < length; t += most.tokens)
          for (size_t h = 0; h < group; h += most.heads) {
            detail::query_block const rows{length - t < most.tokens ? length - t : most.tokens,
                                           group - h < most.heads ? group - h : most.heads};
            size_t const row = (first + t) * heads + kv * group + h;
            detail::attention_block_backward(keys, room, rows, head_dim, t - j, scale, q + row * head_dim, out + row * head_dim,
                                             dout + row * head_dim, stride, lse + row, heads, dq + row * head_dim, j == 0);
          }
        for (size_t i = 0; i < keys.count; ++i)
          for (size_t d = 0; d < head_dim; ++d) {
            dk[at + i * kv_stride + d] = keys.dk[i * width + d];
            dv[at + i * kv_stride + d] = keys.dv[i * width + d];
          }
      }
    }
  });
}
}  // namespace weft::kernels
