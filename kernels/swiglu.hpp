// swiglu.hpp — out = silu(gate) * up, silu(x) = x / (1 + exp(-x)). Outputs may be the inputs.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void swiglu(cpu_context& on, size_t count, T const* gate, T const* up, T* out);
template <class T>
void swiglu_backward(cpu_context& on, size_t count, T const* gate, T const* up, T const* dout, T* dgate /*written*/, T* dup /*written*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/swiglu.hpp>
