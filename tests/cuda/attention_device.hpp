// attention_device.hpp — the attention kernels as plain functions over device memory, for attention_checks.hpp.
#pragma once
#include <cuda_runtime.h>
#include <weft/kernels/paged.hpp>

namespace device {
using namespace weft;
struct shape {
  size_t sequences, heads, kv_heads, head_dim;
  i32 const* cu_seqlens;
  f32 scale;
};
void attention(cudaStream_t, shape const&, bf16 const* q, bf16 const* k, bf16 const* v, bf16* out, f32* lse);
void attention_backward(cudaStream_t, shape const&, bf16 const* q, bf16 const* k, bf16 const* v, bf16 const* out, f32 const* lse,
                        bf16 const* dout, bf16* dq, bf16* dk, bf16* dv);
template <class Kv> void paged_write(cudaStream_t, kernels::paged_pool<Kv> const&, size_t layer, size_t rows, i32 const* sequence,
                                     i32 const* position, bf16 const* k, bf16 const* v);
template <class Kv> void attention_paged(cudaStream_t, kernels::paged_pool<Kv> const&, size_t layer, size_t rows, i32 const* sequence,
                                         i32 const* position, size_t heads, f32 scale, bf16 const* q, bf16* out,
                                         i32 const* members = nullptr, i32 const* shared = nullptr);  // of kernels::page_groups
}  // namespace device
