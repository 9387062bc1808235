// math.hpp — exp and log of vectors, and what rows of numbers need: fixed-order sums, ends shorter than a vector.
//
// Wherever a product feeds a sum, kernels say fma: then a compiler that is allowed to fuse has nothing left to choose, and all builds of
// one machine agree.
#pragma once
#include <cmath>

#include <weft/kernels/cpu/vector.hpp>

namespace weft::kernels {
template <class T> inline constexpr T infinity = static_cast<T>(__builtin_inf());

template <class T> vec<T> choose(ivec<T> condition, vec<T> yes, vec<T> no) { return condition ? yes : no; }
template <class T> vec<T> maximum(vec<T> a, vec<T> b) { return choose<T>(a > b, a, b); }  // b if either is NaN

// Sum and maximum over the lanes, in a fixed tree.
template <class T> T sum_of(vec<T> v) {
  for (size_t half = lanes<T> / 2; half; half /= 2)
    for (size_t i = 0; i < half; ++i) v[i] += v[i + half];
  return v[0];
}
template <class T> T maximum_of(vec<T> v) {
  for (size_t half = lanes<T> / 2; half; half /= 2)
    for (size_t i = 0; i < half; ++i) v[i] = v[i + half] > v[i] ? v[i + half] : v[i];
  return v[0];
}

// f(i, at) for i = 0, lanes, ... below n. `at` loads and stores a whole vector, or at the end the part of one: other lanes load 0 and are
// not stored.
template <class T> struct whole_vector {
  vec<T> load(T const* p) const { return kernels::load(p); }
  void store(T* p, vec<T> v) const { kernels::store(p, v); }
  vec<T> or_else(vec<T> v, T) const { return v; }  // v where the row has an element, the other value beyond its end
};
template <class T> struct part_of_vector {
  size_t count;
  vec<T> load(T const* p) const { return load_part(p, count); }
  void store(T* p, vec<T> v) const { store_part(p, v, count); }
  vec<T> or_else(vec<T> v, T other) const {
    for (size_t i = count; i < lanes<T>; ++i) v[i] = other;
    return v;
  }
};
template <class T, class F> inline void each_vector(size_t n, F const& f) {
  size_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) f(i, whole_vector<T>{});
  if (i < n) f(i, part_of_vector<T>{n - i});
}

// e^x to 1-2 ulp for every x, Inf and NaN too. x = n ln 2 + r; 2^n in two factors, so that results below the normal range come out
// rounded, not 0. The polynomial is Cephes' expf (Moshier).
inline vec<float> exp(vec<float> x) {
  using I = ivec<float>;
  x = choose<float>(x > broadcast(89.0f), broadcast(89.0f), x);
  x = choose<float>(x < broadcast(-105.0f), broadcast(-105.0f), x);
  vec<float> const magic = broadcast(12582912.0f), shifted = fma(x, broadcast(1.44269504089f), magic), n = shifted - magic;
  vec<float> r = fma(n, broadcast(-0.693359375f), x);
  r = fma(n, broadcast(2.12194440e-4f), r);
  vec<float> p = broadcast(1.9875691500e-4f);
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  p = fma(p, r * r, r) + broadcast(1.0f);
  I const exponent = (I)shifted - (I)magic, half = exponent >> 1;
  return p * (vec<float>)((half + 127) << 23) * (vec<float>)((exponent - half + 127) << 23);
}
// ln x to 1-2 ulp for positive normal x; the polynomial is Cephes' logf
inline vec<float> log(vec<float> x) {
  using I = ivec<float>;
  I const bits = (I)x - 0x3f3504f3;  // of sqrt(1/2): the fraction lies in [sqrt(1/2), sqrt(2))
  vec<float> const e = __builtin_convertvector(bits >> 23, vec<float>), f = (vec<float>)((bits & 0x7fffff) + 0x3f3504f3) - broadcast(1.0f),
                   f2 = f * f;
  vec<float> p = broadcast(7.0376836292e-2f);
  p = fma(p, f, broadcast(-1.1514610310e-1f));
  p = fma(p, f, broadcast(1.1676998740e-1f));
  p = fma(p, f, broadcast(-1.2420140846e-1f));
  p = fma(p, f, broadcast(1.4249322787e-1f));
  p = fma(p, f, broadcast(-1.6668057665e-1f));
  p = fma(p, f, broadcast(2.0000714765e-1f));
  p = fma(p, f, broadcast(-2.4999993993e-1f));
  p = fma(p, f, broadcast(3.3333331174e-1f));
  p = fma(p, f * f2, e * broadcast(-2.12194440e-4f));
  p = fma(broadcast(-0.5f), f2, p);
  return fma(e, broadcast(0.693359375f), f + p);
}
inline vec<double> exp(vec<double> x) {
  for (size_t i = 0; i < lanes<double>; ++i) x[i] = std::exp(x[i]);
  return x;
}
inline vec<double> log(vec<double> x) {
  for (size_t i = 0; i < lanes<double>; ++i) x[i] = std::log(x[i]);
  return x;
}
}  // namespace weft::kernels
