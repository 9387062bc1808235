// assemble.cuh — see assemble.hpp. Lengths are known on the device only, so a batch has the size that there is room for, or what the size
// class of the context says (tokens << 32 | rows); what lies beyond its tokens and rows says -1.
#pragma once
#include <weft/kernels/assemble.hpp>
#include <weft/kernels/cuda/vector.cuh>

namespace weft::kernels {
namespace detail {
inline constexpr unsigned scan_threads = 1024;
// One block: where each sequence's tokens and rows begin; those after the last are empty.
static __global__ void __launch_bounds__(scan_threads) place_sequences(sequences from, i32 const* order, i32 const* bin, i32 most,
                                                                       i32* cu_seqlens /*[most + 1]*/, i32* cu_rows /*[most + 1]*/) {
  __shared__ int2 of_warp[scan_threads / 32];
  i32 const first = bin[0], count = bin[1] - bin[0];
  int2 before{0, 0};
  if (threadIdx.x == 0) cu_seqlens[0] = cu_rows[0] = 0;
  for (i32 base = 0; base < most; base += static_cast<i32>(scan_threads)) {
    i32 const k = base + static_cast<i32>(threadIdx.x);
    int2 sum{0, 0};
    if (k < count) {
      size_t const s = static_cast<size_t>(order[first + k]);
      i32 const response = from.lengths[s];
      sum = {from.prompt_lengths[s / from.group] + response - 1, response};
    }
#pragma unroll
    for (unsigned d = 1; d < 32; d *= 2) {
      int const x = __shfl_up_sync(~0u, sum.x, d), y = __shfl_up_sync(~0u, sum.y, d);
      if (threadIdx.x % 32 >= d) sum.x += x, sum.y += y;
    }
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    int2 total = before;
    for (unsigned w = 0; w < scan_threads / 32; ++w) {
      if (w < threadIdx.x / 32) sum.x += of_warp[w].x, sum.y += of_warp[w].y;
      total.x += of_warp[w].x, total.y += of_warp[w].y;
    }
    if (k < most) cu_seqlens[k + 1] = before.x + sum.x, cu_rows[k + 1] = before.y + sum.y;
    before = total;
    __syncthreads();
  }
}
__device__ inline i32 owner_of(i32 i, i32 const* begins /*[n + 1], rising*/,
                               i32 n) {  // the last that begins at i or before and is not empty
  i32 low = 0, high = n;
  while (low + 1 < high) {
    i32 const middle = (low + high) / 2;
    if (begins[middle] <= i) low = middle;
    else high = middle;
  }
  return low;
}
static __global__ void __launch_bounds__(256)
    fill_batch(sequences from, i32 const* order, i32 const* bin, i32 most, i32 const* cu_rows, batch to) {
  i32 const i = static_cast<i32>(blockIdx.x * blockDim.x + threadIdx.x), first = bin[0];
  if (i < to.tokens) {
    i32 id = -1, position = -1;
    if (i < to.cu_seqlens[most]) {
      i32 const k = owner_of(i, to.cu_seqlens, most), t = i - to.cu_seqlens[k];
      size_t const s = static_cast<size_t>(order[first + k]), p = s / from.group;
      i32 const prompt = from.prompt_lengths[p];
      position = t;
      id = t < prompt ? from.prompts[p * from.prompt_room + static_cast<size_t>(t)]
                      : from.tokens[s * from.room + static_cast<size_t>(t - prompt)];
    }
    to.ids[i] = id, to.positions[i] = position;
  }
  if (i < to.rows) {
    i32 row = -1, target = -1, cell = -1, owner = -1;
    if (i < cu_rows[most]) {
      owner = owner_of(i, cu_rows, most);
      i32 const t = i - cu_rows[owner];
      size_t const s = static_cast<size_t>(order[first + owner]);
      row = to.cu_seqlens[owner] + from.prompt_lengths[s / from.group] - 1 + t;
      cell = static_cast<i32>(s * from.room + static_cast<size_t>(t));
      target = from.tokens[cell];
    }
    to.row[i] = row, to.target[i] = target, to.cell[i] = cell, to.owner[i] = owner;
  }
}

template <class F> __global__ void __launch_bounds__(256) for_rows_kernel(size_t rows, F f) {
  size_t const r = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (r < rows) f(r);
}
// Sums of a block, by a tree; thread 0 has them.
template <size_t N, unsigned threads, class T> __device__ inline void sum_block(T (&sum)[N]) {
  __shared__ T part[threads / 32][N];
#pragma unroll
  for (size_t k = 0; k < N; ++k)
#pragma unroll
    for (unsigned d = 16; d; d /= 2) sum[k] += __shfl_down_sync(~0u, sum[k], d);
  if (threadIdx.x % 32 == 0)
    for (size_t k = 0; k < N; ++k) part[threadIdx.x / 32][k] = sum[k];
  __syncthreads();
  if (threadIdx.x == 0)
    for (size_t k = 0; k < N; ++k)
      for (unsigned w = 1; w < threads / 32; ++w) sum[k] += part[w][k];
}
template <size_t N, class F> __global__ void __launch_bounds__(128) sum_rows_kernel(size_t rows, F f, double* part /*[blocks, N]*/) {
  double sum[N] = {};
  size_t const r = size_t{blockIdx.x} * 128 + threadIdx.x;
  if (r < rows) f(r, sum);
  sum_block<N, 128>(sum);
  if (threadIdx.x == 0)
    for (size_t k = 0; k < N; ++k) part[blockIdx.x * N + k] = sum[k];
}
template <size_t N> __global__ void __launch_bounds__(128) sum_row_parts(size_t parts, double const* part, double* sums) {
  double sum[N] = {};
  for (size_t p = threadIdx.x; p < parts; p += 128)
    for (size_t k = 0; k < N; ++k) sum[k] += part[p * N + k];
  sum_block<N, 128>(sum);
  if (threadIdx.x == 0)
    for (size_t k = 0; k < N; ++k) sums[k] += sum[k];
}
// A block for each owner.
template <size_t N, class T, class F> __global__ void __launch_bounds__(128)
    sum_by_owner_kernel(size_t rows, i32 const* owner, F f, T* out) {
  auto const first_from = [&](u32 o) {  // -1 stands at the end
    size_t low = 0, high = rows;
    while (low < high) {
      size_t const middle = (low + high) / 2;
      if (static_cast<u32>(owner[middle]) < o) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  T sum[N] = {};
  for (size_t r = first_from(blockIdx.x) + threadIdx.x, end = first_from(blockIdx.x + 1); r < end; r += 128) f(r, sum);
  sum_block<N, 128>(sum);
  if (threadIdx.x == 0)
    for (size_t k = 0; k < N; ++k) out[blockIdx.x * N + k] = sum[k];
}
// x[*used, rows) = 0
static __global__ void __launch_bounds__(256) clear_tail_kernel(i32 const* used, size_t rows, size_t bytes, char* x) {
  size_t const end = rows * bytes;
  for (size_t at = static_cast<size_t>(*used) * bytes + 4 * (size_t{blockIdx.x} * 256 + threadIdx.x); at < end;
       at += size_t{1024} * gridDim.x)
    *reinterpret_cast<u32*>(x + at) = 0;
}
}  // namespace detail

inline batch assemble(cuda_context& on, sequences const& from, i32 const* order, i32 const* bin, size_t room, i32* to) {
  batch b = batch_in(to, room);
  i32 const tokens = static_cast<i32>(on.size_class >> 32), rows = static_cast<i32>(on.size_class & 0xffffffff);
  b.tokens = b.rows = static_cast<i32>(room - 1);
  if (tokens > 0 && tokens < b.tokens) b.tokens = tokens;
  if (rows > 0 && rows < b.rows) b.rows = rows;
  b.sequences = static_cast<i32>(from.samples < room - 1 ? from.samples : room - 1);
  i32* const cu_rows = scratch_of<i32>(on, static_cast<size_t>(b.sequences) + 1, "assemble");
  detail::place_sequences<<<1, detail::scan_threads, 0, on.stream>>>(from, order, bin, b.sequences, b.cu_seqlens, cu_rows);
  detail::fill_batch<<<blocks_of(room, 256), 256, 0, on.stream>>>(from, order, bin, b.sequences, cu_rows, b);
  check_launch("assemble");
  return b;
}
template <class F> void for_rows(cuda_context& on, size_t rows, F const& f) {
  if (!rows) return;
  detail::for_rows_kernel<<<blocks_of(rows, 256), 256, 0, on.stream>>>(rows, f);
  check_launch("for_rows");
}
template <size_t N, class F> void sum_rows(cuda_context& on, size_t rows, F const& f, double* sums) {
  if (!rows) return;
  unsigned const blocks = blocks_of(rows, 128);
  double* const part = scratch_of<double>(on, blocks * N, "sum_rows");
  detail::sum_rows_kernel<N><<<blocks, 128, 0, on.stream>>>(rows, f, part);
  detail::sum_row_parts<N><<<1, 128, 0, on.stream>>>(blocks, part, sums);
  check_launch("sum_rows");
}
template <size_t N, class T, class F>
void sum_by_owner(cuda_context& on, size_t rows, i32 const* owner, size_t owners, F const& f, T* out) {
  if (!owners) return;
  detail::sum_by_owner_kernel<N, T><<<static_cast<unsigned>(owners), 128, 0, on.stream>>>(rows, owner, f, out);
  check_launch("sum_by_owner");
}
template <class T> void clear_tail(cuda_context& on, i32 const* used, size_t rows, size_t width, T* x) {
  detail::clear_tail_kernel<<<64, 256, 0, on.stream>>>(used, rows, width * sizeof(T), reinterpret_cast<char*>(x));
  check_launch("clear_tail");
}
}  // namespace weft::kernels
