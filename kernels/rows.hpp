// rows.hpp — move whole rows: collect those that a head reads, and put their gradients back.
#pragma once
#include <cstddef>
#include <weft/element.hpp>
#include "context.hpp"

namespace weft::kernels {
// out[r] = x[index[r]]
template <class T> void gather_rows(cpu_context& on, std::size_t rows, std::size_t width, i32 const* index /*[rows]*/,
                                    T const* x /*[any, width]*/, T* out /*[rows, width]*/);
// out is zero but for out[index[r]] = x[r]; an index stands at most once
template <class T> void scatter_rows(cpu_context& on, std::size_t rows, std::size_t width, i32 const* index /*[rows]*/,
                                     T const* x /*[rows, width]*/, std::size_t all, T* out /*[all, width]*/);
void clear(cpu_context& on, void* data, std::size_t bytes);
template <class T> void put(cpu_context& on, std::size_t count, T const* from /*in the memory of the host*/, T* to);
}  // namespace weft::kernels

#include "cpu/rows.hpp"
