// vector.hpp — vectors of float and double as wide as the machine's, on GCC's vector extension: + - * / and comparisons are the compiler's.
// fma is written out, because the compiler is told not to fuse; where the machine has none, it is a product and a sum everywhere.
#pragma once
#include <utility>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <weft/element.hpp>

namespace weft::kernels {
#if defined(__AVX512F__)
inline constexpr size_t vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr size_t vector_bytes = 32;
#else
inline constexpr size_t vector_bytes = 16;
#endif

namespace detail {
template <class T> struct vector_of;
template <> struct vector_of<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
  typedef i32 integers __attribute__((vector_size(vector_bytes)));
};
template <> struct vector_of<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
  typedef std::int64_t integers __attribute__((vector_size(vector_bytes)));
};
}  // namespace detail
template <class T> using vec = typename detail::vector_of<T>::type;
template <class T> using ivec =
    typename detail::vector_of<T>::integers;  // integers of the same size; also what a comparison gives: -1 or 0
template <class T> inline constexpr size_t lanes = vector_bytes / sizeof(T);

inline float fma(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double fma(double a, double b, double c) {
#if defined(__FP_FAST_FMA)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
#if defined(__AVX512F__)
inline vec<float> fma(vec<float> a, vec<float> b, vec<float> c) { return _mm512_fmadd_ps(a, b, c); }
inline vec<double> fma(vec<double> a, vec<double> b, vec<double> c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__AVX2__) && defined(__FMA__)
inline vec<float> fma(vec<float> a, vec<float> b, vec<float> c) { return _mm256_fmadd_ps(a, b, c); }
inline vec<double> fma(vec<double> a, vec<double> b, vec<double> c) { return _mm256_fmadd_pd(a, b, c); }
#else
inline vec<float> fma(vec<float> a, vec<float> b, vec<float> c) {
  for (size_t i = 0; i < lanes<float>; ++i) c[i] = fma(a[i], b[i], c[i]);
  return c;
}
inline vec<double> fma(vec<double> a, vec<double> b, vec<double> c) {
  for (size_t i = 0; i < lanes<double>; ++i) c[i] = fma(a[i], b[i], c[i]);
  return c;
}
#endif

#if defined(__AVX512F__)
inline vec<float> sqrt(vec<float> x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
inline vec<double> sqrt(vec<double> x) { return _mm512_maskz_sqrt_pd(0xff, x); }
#elif defined(__AVX2__)
inline vec<float> sqrt(vec<float> x) { return _mm256_sqrt_ps(x); }
inline vec<double> sqrt(vec<double> x) { return _mm256_sqrt_pd(x); }
#else
inline vec<float> sqrt(vec<float> x) {
  for (size_t i = 0; i < lanes<float>; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}
inline vec<double> sqrt(vec<double> x) {
  for (size_t i = 0; i < lanes<double>; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
}
#endif

template <class T> vec<T> broadcast(T x) { return x - vec<T>{}; }  // x - 0 is x, -0 included
template <class T> vec<T> load(T const* p) {
  vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T> void store(T* p, vec<T> v) { __builtin_memcpy(p, &v, sizeof v); }

// the first `count` (below lanes) elements; the others are 0 and their memory is not touched
#if defined(__AVX512F__)
inline vec<float> load_part(float const* p, size_t count) { return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p); }
inline vec<double> load_part(double const* p, size_t count) { return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p); }
inline void store_part(float* p, vec<float> v, size_t count) { _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v); }
inline void store_part(double* p, vec<double> v, size_t count) { _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), v); }
#else
template <class T> vec<T> load_part(T const* p, size_t count) {
  vec<T> v{};
  for (size_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
template <class T> void store_part(T* p, vec<T> v, size_t count) {
  for (size_t i = 0; i < count; ++i) p[i] = v[i];
}
#endif

namespace detail {
#ifdef __CUDACC__  // its front end loses a pack inside the builtin; what it compiles for the host need not be fast
template <class T, size_t... I> vec<T> interleave(vec<T> a, vec<T> b, std::index_sequence<I...>) {
  return vec<T>{(I % 2 ? b : a)[I / 2]...};
}
template <class T, size_t... I> vec<T> interleave_high(vec<T> a, vec<T> b, std::index_sequence<I...>) {
  return vec<T>{(I % 2 ? b : a)[(sizeof...(I) + I) / 2]...};
}
#else
template <class T, size_t... I> vec<T> interleave(vec<T> a, vec<T> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * sizeof...(I) + I / 2)...);
}
template <class T, size_t... I> vec<T> interleave_high(vec<T> a, vec<T> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * sizeof...(I) + (sizeof...(I) + I) / 2)...);
}
#endif
}  // namespace detail

// rows become columns: log2(lanes) perfect shuffles of the rows
template <class T> void transpose(vec<T> (&row)[lanes<T>]) {
  constexpr size_t n = lanes<T>;
  constexpr std::make_index_sequence<n> all{};
  for (size_t round = 1; round < n; round *= 2) {
    vec<T> next[n];
    for (size_t i = 0; i < n / 2; ++i) {
      next[2 * i] = detail::interleave<T>(row[i], row[i + n / 2], all);
      next[2 * i + 1] = detail::interleave_high<T>(row[i], row[i + n / 2], all);
    }
    for (size_t i = 0; i < n; ++i) row[i] = next[i];
  }
}
}  // namespace weft::kernels
