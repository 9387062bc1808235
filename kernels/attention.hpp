// attention.hpp — causal attention with grouped queries over packed sequences: token t of a sequence sees its tokens 0..t.
// Query head h reads key/value head h / (heads / kv_heads). Keys are walked in blocks of 64 with a running maximum and sum (online softmax,
// Milakov and Gimelshein 2018), so no [tokens, tokens] buffer exists; attention_paged walks the same blocks and gives the same bits.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
inline constexpr size_t key_block = 64;  // keys of one step of the online softmax; also tokens of a page
inline constexpr size_t max_head_dim = 256;

template <class T> void attention(cpu_context& on, size_t sequences, i32 const* cu_seqlens /*[sequences + 1]*/, size_t heads,
                                  size_t kv_heads, size_t head_dim, T scale, T const* q /*[tokens, heads, head_dim]*/,
                                  T const* k /*[tokens, kv_heads, head_dim]*/, T const* v /*[tokens, kv_heads, head_dim]*/,
                                  T* out /*[tokens, heads, head_dim]*/, T* lse /*[tokens, heads], log of the sum of exp(scores), or null*/);
// Sums over queries and keys in their order. dq, dk, dv are written.
template <class T> void attention_backward(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads,
                                           size_t head_dim, T scale, T const* q, T const* k, T const* v, T const* out, T const* lse,
                                           T const* dout, T* dq, T* dk, T* dv);
}  // namespace weft::kernels
#include <weft/kernels/cpu/attention.hpp>
