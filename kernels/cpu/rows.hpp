// cpu/rows.hpp — the defining version of rows.hpp.
#pragma once
#include <cstring>
#include "threads.hpp"

namespace weft::kernels {
template <class T> void gather_rows(cpu_context& on, std::size_t rows, std::size_t width, i32 const* index, T const* x, T* out) {
  parallel_for(on, rows, 64, [=](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) std::memcpy(out + r * width, x + std::size_t(index[r]) * width, width * sizeof(T));
  });
}
template <class T>
void scatter_rows(cpu_context& on, std::size_t rows, std::size_t width, i32 const* index, T const* x, std::size_t all, T* out) {
  clear(on, out, all * width * sizeof(T));
  parallel_for(on, rows, 64, [=](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) std::memcpy(out + std::size_t(index[r]) * width, x + r * width, width * sizeof(T));
  });
}
template <class T> void put(cpu_context&, std::size_t count, T const* from, T* to) { std::memcpy(to, from, count * sizeof(T)); }
inline void clear(cpu_context& on, void* data, std::size_t bytes) {
  parallel_for(on, bytes, std::size_t{1} << 18,
               [=](std::size_t begin, std::size_t end) { std::memset(static_cast<char*>(data) + begin, 0, end - begin); });
}
}  // namespace weft::kernels
