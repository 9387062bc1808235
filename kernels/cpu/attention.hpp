// attention.hpp (cpu) — blocks of rows (a token and a query head each) walk the keys together; scores and outputs are products of tiles.
// What a row computes does not depend on the rows beside it: its scores and its output are chains of tile.hpp that end at its own last key.
#pragma once
#include <weft/kernels/attention.hpp>
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/cpu/tile.hpp>

namespace weft::kernels {
namespace detail {
inline constexpr size_t query_rows = 64;  // rows that one walk over the keys serves

// Rows of one key/value head: `tokens` tokens in order, `heads` query heads of each. The tokens divide a block of keys, so that blocks of
// both meet.
struct query_block {
  size_t tokens, heads;
  size_t rows() const { return tokens * heads; }
};
inline query_block largest_query_block(size_t group) {
  query_block b{key_block, group < query_rows ? group : query_rows};
  while (b.rows() > query_rows) b.tokens /= 2;
  return b;
}
template <class T> struct key_value_block {
  T const* k;
  T const* v;
  size_t stride;
};

// [rows, head_dim] at distance `stride` -> [rows, width], the rest of the width 0
template <class T> void copy_rows(size_t rows, size_t head_dim, size_t width, T const* from, size_t stride, T* to) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t d = 0; d < head_dim; ++d) to[r * width + d] = from[r * stride + d];
    for (size_t d = head_dim; d < width; ++d) to[r * width + d] = 0;
  }
}
// the rows of a query block, at x + token * stride + head * head_dim, times `factor`
template <class T> void copy_queries(query_block b, size_t head_dim, size_t width, T const* x, size_t stride, T factor, T* to) {
  for (size_t t = 0; t < b.tokens; ++t) copy_rows(b.heads, head_dim, width, x + t * stride, head_dim, to + t * b.heads * width);
  for (size_t i = 0; factor != 1 && i < b.rows() * width; ++i) to[i] *= factor;
}
// strips of rows [., width] as left operands: strip s at to + begin(s) * head_dim
template <class T> void pack_strips(strips<T> const& strip, size_t head_dim, size_t width, T const* rows, T* to) {
  for (size_t s = 0; s < strip.count; ++s)
    pack(strip.size(s), strip.size(s), head_dim, rows + strip.begin(s) * width, width, true, to + strip.begin(s) * head_dim);
}
// keys (or values) as right operand: panels of a tile's columns
template <class T> void pack_panels(size_t count, size_t head_dim, T const* rows, size_t stride, T* to) {
  constexpr size_t columns = tile_shape<T>::columns;
  for (size_t j = 0; j < count; j += columns)
    pack(columns, count - j < columns ? count - j : columns, head_dim, rows + j * stride, stride, true, to + j * head_dim);
}
// to[rows, 64] = strip panels: the scores of `rows` rows with the first `count` keys; columns beyond may hold anything
template <class T> void scores(size_t rows, size_t count, size_t head_dim, T const* strip, T const* panels, T* to) {
  for (size_t j = 0; j < count; j += tile_shape<T>::columns)
    tile_of<T>(rows)(head_dim, strip, rows, panels + j * head_dim, tile_shape<T>::columns, to + j, key_block, false);
}

template <class T> struct online_softmax { T max = -infinity<T>, sum = 0; };

// One step of a row: score[0, count) becomes exp(score - max so far), the rest 0. Returns what the row's earlier output must be multiplied
// by.
template <class T> [[gnu::noinline]] T online_step(size_t count, T* score /*[64]*/, online_softmax<T>& state) {
  for (size_t j = count; j < key_block; ++j) score[j] = -infinity<T>;
  vec<T> most = broadcast(state.max), sum{};
  for (size_t j = 0; j < key_block; j += lanes<T>) most = maximum<T>(load(score + j), most);
  T const max = maximum_of<T>(most), keep = std::exp(state.max - max);
  for (size_t j = 0; j < key_block; j += lanes<T>) {
    vec<T> const p = exp(load(score + j) - broadcast(max));
    store(score + j, p);
    sum += p;
  }
  state = {max, fma(state.sum, keep, sum_of<T>(sum))};
  return keep;
}
// the keys [begin, end) of one row, as a tile would add them
template <class T>
[[gnu::noinline]] void add_values(size_t width, size_t begin, size_t end, T const* p, T const* v, size_t stride, T* out /*[width]*/) {
  for (size_t j = begin; j < end; ++j)
    for (size_t d = 0; d < width; d += lanes<T>) store(out + d, fma(broadcast(p[j]), load(v + j * stride + d), load(out + d)));
}

// A query block whose first token stands at `position`. block(b, count) -> keys and values [64 b, 64 b + count) of its sequence.
template <class T, class Block> void attention_block(query_block rows, size_t head_dim, size_t position, T scale, T const* q, size_t stride,
                                                     Block const& block, T* out, T* lse /*or null*/, size_t lse_stride) {
  size_t const width = round_up(head_dim, tile_shape<T>::columns), n = rows.rows();
  alignas(64) T acc[query_rows * max_head_dim], packed[query_rows * max_head_dim + lanes<T>];
  alignas(64) T keys[key_block * max_head_dim + lanes<T>], values[key_block * max_head_dim], p[tile_shape<T>::rows * key_block];
  online_softmax<T> state[query_rows];
  strips<T> const strip(n);
  copy_queries(rows, head_dim, width, q, stride, scale, acc);
  pack_strips(strip, head_dim, width, acc, packed);
  for (size_t i = 0; i < n * width; ++i) acc[i] = 0;

  for (size_t first = 0; first < position + rows.tokens; first += key_block) {
    auto const visible = [=](size_t row) {  // keys of this block that the row sees
      size_t const end = position + row / rows.heads + 1;
      return end <= first ? 0 : end - first < key_block ? end - first : key_block;
    };
    size_t const count = visible(n - 1);
    key_value_block<T> kv = block(first / key_block, count);
    pack_panels(count, head_dim, kv.k, kv.stride, keys);
    if (width != head_dim) {
      copy_rows(count, head_dim, width, kv.v, kv.stride, values);
      kv = {kv.k, values, width};
    }
    for (size_t s = 0; s < strip.count; ++s) {
      size_t const begin = strip.begin(s), size = strip.size(s), shared = visible(begin);
      if (visible(begin + size - 1) == 0) continue;
      scores(size, visible(begin + size - 1), head_dim, packed + begin * head_dim, keys, p);
      for (size_t r = 0; r < size; ++r) {
        if (visible(begin + r) == 0) continue;
        T const keep = online_step(visible(begin + r), p + r * key_block, state[begin + r]);
        T* const row = acc + (begin + r) * width;
        for (size_t d = 0; d < width; d += lanes<T>) store(row + d, load(row + d) * broadcast(keep));
      }
      if (shared > 0)
        for (size_t d = 0; d < width; d += tile_shape<T>::columns)
          tile_of<T, key_block>(size)(shared, p, 0, kv.v + d, kv.stride, acc + begin * width + d, width, true);
      for (size_t r = 0; r < size; ++r)
        add_values(width, shared, visible(begin + r), p + r * key_block, kv.v, kv.stride, acc + (begin + r) * width);
    }
  }
  for (size_t r = 0; r < n; ++r) {
    T* const to = out + r / rows.heads * stride + r % rows.heads * head_dim;
    for (size_t d = 0; d < head_dim; ++d) to[d] = acc[r * width + d] / state[r].sum;
    if (lse) lse[r / rows.heads * lse_stride + r % rows.heads] = state[r].max + std::log(state[r].sum);
  }
}

// f(first token of the sequence, position, query block, first query head) for every query block of head `kv`; `kv` varies fastest
template <class F>
void each_query_block(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, F const& f) {
  size_t const group = heads / kv_heads;
  query_block const most = largest_query_block(group);
  auto const blocks = [=](size_t s) { return (static_cast<size_t>(cu_seqlens[s + 1] - cu_seqlens[s]) + most.tokens - 1) / most.tokens; };
  size_t total = 0;
  for (size_t s = 0; s < sequences; ++s) total += blocks(s);
  parallel_for(on, total * kv_heads, 1, [=, &f](size_t begin, size_t end) {
    size_t s = 0, before = 0;  // blocks of earlier sequences
    for (size_t task = begin; task < end; ++task) {
      while (task / kv_heads >= before + blocks(s)) before += blocks(s++);
      size_t const first = static_cast<size_t>(cu_seqlens[s]), position = (task / kv_heads - before) * most.tokens;
      size_t const left = static_cast<size_t>(cu_seqlens[s + 1]) - first - position, kv = task % kv_heads;
      for (size_t h = 0; h < group; h += most.heads)
        f(first, position, query_block{left < most.tokens ? left : most.tokens, group - h < most.heads ? group - h : most.heads},
          kv * group + h, kv);
    }
  });
}
}  // namespace detail

template <class T> void attention(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, size_t head_dim,
                                  T scale, T const* q, T const* k, T const* v, T* out, T* lse) {
  detail::each_query_block(
      on, sequences, cu_seqlens, heads, kv_heads, [=](size_t first, size_t position, detail::query_block rows, size_t head, size_t kv) {
        size_t const row = (first + position) * heads + head, stride = kv_heads * head_dim, base = first * stride + kv * head_dim;
        auto const block = [=](size_t b, size_t) {
          return detail::key_value_block<T>{k + base + b * key_block * stride, v + base + b * key_block * stride, stride};
        };
        detail::attention_block(rows, head_dim, position, scale, q + row * head_dim, heads * head_dim, block, out + row * head_dim,
                                lse ? lse + row : nullptr, heads);
      });
}
}  // namespace weft::kernels
#include <weft/kernels/cpu/attention_backward.hpp>
