// swiglu.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/swiglu.hpp>

namespace weft::kernels {
namespace detail {
template <class T> [[gnu::noinline]] void swiglu_range(size_t count, T const* gate, T const* up, T* out) {
  each_vector<T>(count, [&](size_t i, auto at) {
    vec<T> const g = at.load(gate + i);
    at.store(out + i, g / (broadcast(T(1)) + exp(-g)) * at.load(up + i));
  });
}
// d silu(g) / dg = s (1 + g (1 - s)), s the sigmoid of g
template <class T> [[gnu::noinline]] void swiglu_backward_range(size_t count, T const* gate, T const* up, T const* dout, T* dgate, T* dup) {
  vec<T> const one = broadcast(T(1));
  each_vector<T>(count, [&](size_t i, auto at) {
    vec<T> const g = at.load(gate + i), d = at.load(dout + i), s = one / (one + exp(-g)), slope = s * fma(g, one - s, one);
    vec<T> const u = at.load(up + i);
    at.store(dgate + i, d * u * slope);
    at.store(dup + i, d * g * s);
  });
}
}  // namespace detail

template <class T> void swiglu(cpu_context& on, size_t count, T const* gate, T const* up, T* out) {
  parallel_for(on, count, 1 << 12,
               [=](size_t begin, size_t end) { detail::swiglu_range(end - begin, gate + begin, up + begin, out + begin); });
}
template <class T> void swiglu_backward(cpu_context& on, size_t count, T const* gate, T const* up, T const* dout, T* dgate, T* dup) {
  parallel_for(on, count, 1 << 12, [=](size_t begin, size_t end) {
    detail::swiglu_backward_range(end - begin, gate + begin, up + begin, dout + begin, dgate + begin, dup + begin);
  });
}
}  // namespace weft::kernels
