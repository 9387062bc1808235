// embedding.hpp (cpu): the backward is cut by columns, so that every row of the table sums its tokens in order.
#pragma once
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/embedding.hpp>

namespace weft::kernels {
template <class T> void embed(cpu_context& on, size_t tokens, size_t width, i32 const* ids, T const* table, T* out) {
  parallel_for(on, tokens, (1 << 14) / (width + 1) + 1, [=](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      T const* row = table + static_cast<size_t>(ids[t]) * width;
      for (size_t i = 0; i < width; ++i) out[t * width + i] = row[i];
    }
  });
}
template <class T> void embed_backward(cpu_context& on, size_t tokens, size_t width, i32 const* ids, T const* dout, T* dtable) {
  parallel_for(on, width, 64, [=](size_t begin, size_t end) {
    for (size_t t = 0; t < tokens; ++t) {
      T* row = dtable + static_cast<size_t>(ids[t]) * width;
      for (size_t i = begin; i < end; ++i) row[i] += dout[t * width + i];
    }
  });
}
}  // namespace weft::kernels
