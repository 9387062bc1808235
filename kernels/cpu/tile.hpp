// tile.hpp — the inner loop of every matrix product here: a tile of c lives in registers while k runs upward, one fused multiply-add a
// step. The bits of an output do not depend on the tile it lies in, nor on whether it rested in memory between two calls.
#pragma once
#include <weft/kernels/cpu/vector.hpp>

namespace weft::kernels::detail {
template <class T> struct tile_shape {
#if defined(__AVX512F__)
  static constexpr size_t rows = 12;  // 24 accumulators of 32 registers
#else
  static constexpr size_t rows = 6;  // 12 of 16
#endif
  static constexpr size_t columns = 2 * lanes<T>;
};
constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// c[R, columns] (+)= a b, b[p * ldb + column]. Row r of a: a[p * step + r] or, with Across > 0, a[r * Across + p].
template <class T, size_t R, size_t Across>
[[gnu::noinline]] void tile(size_t k, T const* a, size_t step, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  constexpr size_t L = lanes<T>, next = Across ? Across : 1;
  vec<T> sum[R][2] = {};
  if (accumulate)
    for (size_t r = 0; r < R; ++r) sum[r][0] = load(c + r * ldc), sum[r][1] = load(c + r * ldc + L);
  for (size_t p = 0; p < k; ++p, a += Across ? 1 : step, b += ldb) {
    vec<T> const b0 = load(b), b1 = load(b + L);
    for (size_t r = 0; r < R; ++r) {
      vec<T> const x = broadcast(a[r * next]);
      sum[r][0] = fma(x, b0, sum[r][0]);
      sum[r][1] = fma(x, b1, sum[r][1]);
    }
  }
  for (size_t r = 0; r < R; ++r) store(c + r * ldc, sum[r][0]), store(c + r * ldc + L, sum[r][1]);
}
template <class T>
using tile_pointer = void (*)(size_t k, T const* a, size_t step, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate);
template <class T, size_t Across, size_t... R> tile_pointer<T> tile_from(size_t rows, std::index_sequence<R...>) {
  static constexpr tile_pointer<T> table[] = {tile<T, R + 1, Across>...};
  return table[rows - 1];
}
template <class T, size_t Across = 0> tile_pointer<T> tile_of(size_t rows) {
  return tile_from<T, Across>(rows, std::make_index_sequence<tile_shape<T>::rows>{});
}

// `rows` in strips of (nearly) equal size, none above a tile's
template <class T> struct strips {
  size_t rows, count;
  explicit strips(size_t n) : rows(n), count((n + tile_shape<T>::rows - 1) / tile_shape<T>::rows) {}
  size_t begin(size_t s) const { return rows * s / count; }
  size_t size(size_t s) const { return begin(s + 1) - begin(s); }
};

// to[p * width + i] = x(i, p), i < count, p < k; the rest of the width is 0. x(i, p) is from[i * ld + p] (along_k) or from[p * ld + i].
// What a store writes beyond the width, the next one writes over: `to` has room for a vector more. A second vector of the width is stored
// exactly, as the first of the next p is there already.
template <class T> void pack(size_t width, size_t count, size_t k, T const* from, size_t ld, bool along_k, T* to) {
  constexpr size_t L = lanes<T>;
  for (size_t i = 0; i < width; i += L) {
    size_t const part = count > i ? (count - i < L ? count - i : L) : 0;
    auto const put = [=](size_t p, vec<T> v) {
      i > 0 && width - i < L ? store_part(to + p * width + i, v, width - i) : store(to + p * width + i, v);
    };
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

// The same for few rows, where packing would cost more than the product: c[R, n] (+)= a b^T with b [n, k] read where it lies, a vector of
// its rows at a time. a: [R, k].
template <class T, size_t R>
[[gnu::noinline]] void thin_tile(size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  constexpr size_t L = lanes<T>;
  for (size_t j = 0; j < n; j += L) {
    size_t const count = n - j < L ? n - j : L;
    vec<T> sum[R] = {};
    for (size_t r = 0; accumulate && r < R; ++r) sum[r] = count == L ? load(c + r * ldc + j) : load_part(c + r * ldc + j, count);
    for (size_t p = 0; p < k; p += L) {
      size_t const depth = k - p < L ? k - p : L;
      vec<T> row[L];
      for (size_t i = 0; i < L; ++i) {
        T const* const x = b + (j + (i < count ? i : 0)) * ldb + p;
        row[i] = depth == L ? load(x) : load_part(x, depth);
      }
      transpose<T>(row);
      auto const step = [&](size_t i) {
        for (size_t r = 0; r < R; ++r) sum[r] = fma(broadcast(a[r * lda + p + i]), row[i], sum[r]);
      };
      if (depth == L)
        for (size_t i = 0; i < L; ++i) step(i);
      else
        for (size_t i = 0; i < depth; ++i) step(i);
    }
    for (size_t r = 0; r < R; ++r) count == L ? store(c + r * ldc + j, sum[r]) : store_part(c + r * ldc + j, sum[r], count);
  }
}
inline constexpr size_t thin_rows = 4;
template <class T>
void thin(size_t rows, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  static constexpr decltype(&thin_tile<T, 1>) of[] = {thin_tile<T, 1>, thin_tile<T, 2>, thin_tile<T, 3>, thin_tile<T, 4>};
  of[rows - 1](n, k, a, lda, b, ldb, c, ldc, accumulate);
}
}  // namespace weft::kernels::detail
