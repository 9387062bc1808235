// swiglu.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/swiglu.hpp>

namespace weft::kernels {
namespace detail {
template <class T> [[gnu::noinline]] void swiglu_range(size_t count, T const* gate, T const* up, T* out) {
  for (size_t i = 0; i < count; ++i) out[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}
}  // namespace detail

template <class T> void swiglu(cpu_context& on, size_t count, T const* gate, T const* up, T* out) {
  parallel_for(on, count, 1 << 12, [=](size_t begin, size_t end) { detail::swiglu_range(end - begin, gate + begin, up + begin, out + begin); });
}
template <class T> void swiglu_backward(cpu_context& on, size_t count, T const* gate, T const* up, T const* dout, T* dgate, T* dup) {
  parallel_for(on, count, 1 << 12, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      T const g = gate[i], u = up[i], d = dout[i], sigmoid = 1 / (1 + std::exp(-g));
      dgate[i] = d * u * sigmoid * (1 + g * (1 - sigmoid));
      dup[i] = d * g * sigmoid;
    }
  });
}
}  // namespace weft::kernels
