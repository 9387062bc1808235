// rows.cuh — move whole rows.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
// Unit: 16 bytes, or one element where the width does not divide
template <class Unit, bool scatter>
__global__ void move_rows(size_t rows, size_t units /*of a row*/, i32 const* index, Unit const* x, Unit* out) {
  wait_for_previous();
  next_may_start();  // now, so that what comes behind an embedding may count on all that was in front of it
  size_t const at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= rows * units) return;
  size_t const r = at / units, u = at % units;
  i32 const other = index[r];
  if (other < 0) {
    if constexpr (!scatter) out[at] = Unit{};
  } else if constexpr (scatter) out[static_cast<size_t>(other) * units + u] = x[at];
  else out[at] = x[static_cast<size_t>(other) * units + u];
}
template <bool scatter, class T> void move(cuda_context& on, size_t rows, size_t width, i32 const* index, T const* x, T* out) {
  if (!rows || !width) return;
  if (width * sizeof(T) % 16 == 0 && whole_eights(8, x, out)) {
    size_t const units = width * sizeof(T) / 16;
    launch_chained(on, "move rows", move_rows<uint4, scatter>, blocks_of(rows * units, 256), 256, 0, 1, rows, units, index,
                   reinterpret_cast<uint4 const*>(x), reinterpret_cast<uint4*>(out));
  } else {
    launch_chained(on, "move rows", move_rows<T, scatter>, blocks_of(rows * width, 256), 256, 0, 1, rows, width, index, x, out);
  }
}
}  // namespace detail

inline void clear(cuda_context& on, void* data, size_t bytes) { check(cudaMemsetAsync(data, 0, bytes, on.stream), "clear"); }
template <class T> void put(cuda_context& on, size_t count, T const* from, T* to) {
  check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyHostToDevice, on.stream), "put");
}
// out[r] = x[index[r]]; zero where the index is below 0
template <class T> void gather_rows(cuda_context& on, size_t rows, size_t width, i32 const* index /*[rows]*/, T const* x /*[any, width]*/,
                                    T* out /*[rows, width]*/) {
  detail::move<false>(on, rows, width, index, x, out);
}
// out is zero but for out[index[r]] = x[r]; an index from 0 on stands at most once
template <class T> void scatter_rows(cuda_context& on, size_t rows, size_t width, i32 const* index /*[rows]*/, T const* x /*[rows, width]*/,
                                     size_t all, T* out /*[all, width]*/) {
  clear(on, out, all * width * sizeof(T));
  detail::move<true>(on, rows, width, index, x, out);
}
}  // namespace weft::kernels
