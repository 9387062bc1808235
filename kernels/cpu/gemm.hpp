// gemm.hpp (cpu) — a and b are packed, so that the tiles read straight ahead from the caches. Between two blocks of k a tile rests in c,
// which rounds nothing. Threads take blocks of c; each packs for itself, into its stack. Few rows of a do without.
#pragma once
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/cpu/tile.hpp>
#include <weft/kernels/gemm.hpp>

namespace weft::kernels {
namespace detail {
template <class T> struct gemm_blocks {
  static constexpr size_t k = 1536 / sizeof(T), m = 192;         // this much of a stays in the second-level cache
  static constexpr size_t least_n = 8 * tile_shape<T>::columns;  // of a thread's block: packing a again must not count
};
template <class T> struct gemm_operand {
  T const* data;
  size_t ld;
  bool along_k;  // neighbours in memory are neighbours along k
  T const* at(size_t i, size_t p) const { return along_k ? data + i * ld + p : data + p * ld + i; }
};

// a tile of fewer columns than it computes
template <class T> void gemm_edge(size_t m, size_t n, size_t k, T const* a, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  constexpr size_t columns = tile_shape<T>::columns;
  T whole[tile_shape<T>::rows * columns];
  for (size_t i = 0; accumulate && i < m; ++i)
    for (size_t j = 0; j < columns; ++j) whole[i * columns + j] = j < n ? c[i * ldc + j] : T(0);
  tile_of<T>(m)(k, a, m, b, ldb, whole, columns, accumulate);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) c[i * ldc + j] = whole[i * columns + j];
}

// rows [i0, i1), columns [j0, j1) of c
template <class T> [[gnu::noinline]] void gemm_block(size_t i0, size_t i1, size_t j0, size_t j1, size_t k, gemm_operand<T> a,
                                                     gemm_operand<T> b, T* c, size_t ldc, bool accumulate) {
  using blocks = gemm_blocks<T>;
  constexpr size_t columns = tile_shape<T>::columns;
  alignas(64) T packed_a[blocks::m * blocks::k + lanes<T>];
  alignas(64) T packed_b[columns * blocks::k + lanes<T>];
  strips<T> const strip(i1 - i0);
  size_t p = 0;
  do {
    size_t const depth = k - p < blocks::k ? k - p : blocks::k;
    for (size_t s = 0; s < strip.count; ++s)
      pack(strip.size(s), strip.size(s), depth, a.at(i0 + strip.begin(s), p), a.ld, a.along_k, packed_a + strip.begin(s) * depth);
    for (size_t j = j0; j < j1; j += columns) {
      size_t const n = j1 - j < columns ? j1 - j : columns;
      bool const in_place = !b.along_k && strip.count == 1 && n == columns;  // read once: not worth packing
      if (!in_place) pack(columns, n, depth, b.at(j, p), b.ld, b.along_k, packed_b);
      T const* const panel = in_place ? b.at(j, p) : packed_b;
      size_t const ldb = in_place ? b.ld : columns;
      for (size_t s = 0; s < strip.count; ++s) {
        T const* const rows = packed_a + strip.begin(s) * depth;
        T* const to = c + (i0 + strip.begin(s)) * ldc + j;
        if (n == columns) tile_of<T>(strip.size(s))(depth, rows, strip.size(s), panel, ldb, to, ldc, accumulate || p > 0);
        else gemm_edge(strip.size(s), n, depth, rows, panel, ldb, to, ldc, accumulate || p > 0);
      }
    }
    p += depth;
  } while (p < k);
}

template <class T>
void gemm(cpu_context& on, size_t m, size_t n, size_t k, gemm_operand<T> a, gemm_operand<T> b, T* c, size_t ldc, bool accumulate) {
  using blocks = gemm_blocks<T>;
  constexpr size_t columns = tile_shape<T>::columns;
  if (m == 0 || n == 0) return;
  if (m <= thin_rows && a.along_k && b.along_k) {  // decode of few sequences
    parallel_for(on, (n + columns - 1) / columns, 4, [=](size_t begin, size_t end) {
      size_t const j = begin * columns, last = end * columns < n ? end * columns : n;
      thin(m, last - j, k, a.data, a.ld, b.at(j, 0), b.ld, c + j, ldc, accumulate);
    });
    return;
  }
  size_t const down = (m + blocks::m - 1) / blocks::m, wanted = on.pool ? 3 * on.pool->size() : 1;  // blocks: some for each thread
  size_t const panels = (n + columns - 1) / columns, most = (n + blocks::least_n - 1) / blocks::least_n, share = (wanted + down - 1) / down;
  size_t const across = share < most ? share : most;
  parallel_for(on, down * across, 1, [=](size_t begin, size_t end) {
    for (size_t block = begin; block < end; ++block) {
      size_t const i = block / across, j = block % across, last = panels * (j + 1) / across * columns;
      gemm_block(m * i / down, m * (i + 1) / down, panels * j / across * columns, last < n ? last : n, k, a, b, c, ldc, accumulate);
    }
  });
}
}  // namespace detail

template <class T> void gemm_nt(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c,
                                size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, true}, {b, ldb, true}, c, ldc, accumulate);
}
template <class T> void gemm_nn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c,
                                size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, true}, {b, ldb, false}, c, ldc, accumulate);
}
template <class T> void gemm_tn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c,
                                size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, false}, {b, ldb, false}, c, ldc, accumulate);
}
}  // namespace weft::kernels
