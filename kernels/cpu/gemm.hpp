// gemm.hpp (cpu) — the inner loop holds a tile of c in registers and walks k; a and b are packed so that it reads straight ahead. Between two
// blocks of k the tile rests in c, which rounds nothing. Threads take blocks of c.
#pragma once
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/cpu/vector.hpp>
#include <weft/kernels/gemm.hpp>

namespace weft::kernels {
namespace detail {
template <class T> struct gemm_shape {
#if defined(__AVX512F__)
  static constexpr size_t rows = 12;  // 24 accumulators of 32 registers
#else
  static constexpr size_t rows = 6;   // 12 of 16
#endif
  static constexpr size_t columns = 2 * lanes<T>;
  static constexpr size_t block_k = 1536 / sizeof(T), block_m = 192;  // a block of a stays in the second-level cache
  static constexpr size_t least_n = 8 * columns;                      // of a thread's block: packing a again must not count
};

// c[R, columns] = or += a[k][R]^T b[k][columns], every output one chain over k
template <class T, size_t R> [[gnu::noinline]] void gemm_tile(size_t k, T const* a, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  constexpr size_t L = lanes<T>;
  vec<T> sum[R][2] = {};
  if (accumulate)
    for (size_t r = 0; r < R; ++r) sum[r][0] = load(c + r * ldc), sum[r][1] = load(c + r * ldc + L);
  for (size_t p = 0; p < k; ++p, a += R, b += ldb) {
    vec<T> const b0 = load(b), b1 = load(b + L);
    for (size_t r = 0; r < R; ++r) {
      vec<T> const x = broadcast(a[r]);
      sum[r][0] = fma(x, b0, sum[r][0]);
      sum[r][1] = fma(x, b1, sum[r][1]);
    }
  }
  for (size_t r = 0; r < R; ++r) store(c + r * ldc, sum[r][0]), store(c + r * ldc + L, sum[r][1]);
}
template <class T> using gemm_tile_pointer = void (*)(size_t k, T const* a, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate);
template <class T, size_t... R> constexpr gemm_tile_pointer<T> gemm_tile_of(size_t rows, std::index_sequence<R...>) {
  constexpr gemm_tile_pointer<T> table[] = {gemm_tile<T, R + 1>...};
  return table[rows - 1];
}
// a tile of any rows and columns up to the whole; b is packed, its columns beyond n are there
template <class T> void gemm_any_tile(size_t m, size_t n, size_t k, T const* a, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  using shape = gemm_shape<T>;
  auto const tile = gemm_tile_of<T>(m, std::make_index_sequence<shape::rows>{});
  if (n == shape::columns) return tile(k, a, b, ldb, c, ldc, accumulate);
  T whole[shape::rows * shape::columns];
  for (size_t i = 0; accumulate && i < m; ++i)
    for (size_t j = 0; j < shape::columns; ++j) whole[i * shape::columns + j] = j < n ? c[i * ldc + j] : T(0);
  tile(k, a, b, ldb, whole, shape::columns, accumulate);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) c[i * ldc + j] = whole[i * shape::columns + j];
}

// to[p * width + i] = from(i, p), i < count; the rest of the width is 0. What a store writes beyond the width, the next one writes over: `to` has
// room for a vector more. A second vector of the width is stored exactly, as the first of the next p is there already.
// from(i, p) is from[i * ld + p] (along_k) or from[p * ld + i]
template <class T> void gemm_pack(size_t width, size_t count, size_t k, T const* from, size_t ld, bool along_k, T* to) {
  constexpr size_t L = lanes<T>;
  for (size_t i = 0; i < width; i += L) {
    size_t const part = count > i ? (count - i < L ? count - i : L) : 0;
    auto const put = [=](size_t p, vec<T> v) { i > 0 && width - i < L ? store_part(to + p * width + i, v, width - i) : store(to + p * width + i, v); };
    if (!along_k) {
      for (size_t p = 0; p < k; ++p) put(p, part == L ? load(from + p * ld + i) : load_part(from + p * ld + i, part));
    } else {
      for (size_t p = 0; p < k; p += L) {
        size_t const depth = k - p < L ? k - p : L;
        vec<T> row[L];
        for (size_t j = 0; j < L; ++j) {
          T const* x = from + (i + j) * ld + p;
          row[j] = j >= part ? vec<T>{} : depth == L ? load(x) : load_part(x, depth);
        }
        transpose<T>(row);
        for (size_t j = 0; j < depth; ++j) put(p + j, row[j]);
      }
    }
  }
}

template <class T> struct gemm_operand {
  T const* data;
  size_t ld;
  bool along_k;  // neighbours in memory are neighbours along k
  T const* at(size_t i, size_t p) const { return along_k ? data + i * ld + p : data + p * ld + i; }
};

// rows [i0, i1), columns [j0, j1) of c
template <class T> [[gnu::noinline]] void gemm_block(size_t i0, size_t i1, size_t j0, size_t j1, size_t k, gemm_operand<T> a, gemm_operand<T> b, T* c, size_t ldc,
                                                     bool accumulate) {
  using shape = gemm_shape<T>;
  alignas(64) T packed_a[shape::block_m * shape::block_k + lanes<T>];
  alignas(64) T packed_b[shape::columns * shape::block_k + lanes<T>];
  size_t const m = i1 - i0, strips = (m + shape::rows - 1) / shape::rows;
  auto const strip = [=](size_t s) { return m * s / strips; };  // strips of a (nearly) equal number of rows
  size_t p = 0;
  do {
    size_t const depth = k - p < shape::block_k ? k - p : shape::block_k;
    for (size_t s = 0; s < strips; ++s)
      gemm_pack(strip(s + 1) - strip(s), strip(s + 1) - strip(s), depth, a.at(i0 + strip(s), p), a.ld, a.along_k, packed_a + strip(s) * depth);
    for (size_t j = j0; j < j1; j += shape::columns) {
      size_t const n = j1 - j < shape::columns ? j1 - j : shape::columns;
      bool const in_place = !b.along_k && strips == 1 && n == shape::columns;  // read once: not worth packing
      if (!in_place) gemm_pack(shape::columns, n, depth, b.at(j, p), b.ld, b.along_k, packed_b);
      for (size_t s = 0; s < strips; ++s)
        gemm_any_tile(strip(s + 1) - strip(s), n, depth, packed_a + strip(s) * depth, in_place ? b.at(j, p) : packed_b, in_place ? b.ld : shape::columns,
                      c + (i0 + strip(s)) * ldc + j, ldc, accumulate || p > 0);
    }
    p += depth;
  } while (p < k);
}

template <class T> void gemm(cpu_context& on, size_t m, size_t n, size_t k, gemm_operand<T> a, gemm_operand<T> b, T* c, size_t ldc, bool accumulate) {
  using shape = gemm_shape<T>;
  if (m == 0 || n == 0) return;
  size_t const across = (m + shape::block_m - 1) / shape::block_m, wanted = on.pool ? 3 * on.pool->size() : 1;
  size_t const panels = (n + shape::columns - 1) / shape::columns, most = (n + shape::least_n - 1) / shape::least_n;
  size_t const along = wanted <= across ? 1 : (wanted + across - 1) / across < most ? (wanted + across - 1) / across : most;
  parallel_for(on, across * along, 1, [=](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      size_t const i = task / along, j = task % along;
      size_t const last = panels * (j + 1) / along * shape::columns;
      gemm_block(m * i / across, m * (i + 1) / across, panels * j / along * shape::columns, last < n ? last : n, k, a, b, c, ldc, accumulate);
    }
  });
}
}  // namespace detail

template <class T> void gemm_nt(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, true}, {b, ldb, true}, c, ldc, accumulate);
}
template <class T> void gemm_nn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, true}, {b, ldb, false}, c, ldc, accumulate);
}
template <class T> void gemm_tn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm<T>(on, m, n, k, {a, lda, false}, {b, ldb, false}, c, ldc, accumulate);
}
}  // namespace weft::kernels
