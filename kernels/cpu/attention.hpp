// attention.hpp (cpu)
#pragma once
#include <weft/kernels/attention.hpp>
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>

namespace weft::kernels {
namespace detail {
template <class T> struct online_softmax { T max, sum; };  // of the scores seen so far

// One block of at most 64 keys for one query: k and v are rows at distance `stride`. acc is the unnormalised output.
template <class T> [[gnu::noinline]] void attention_block(size_t head_dim, size_t count, size_t stride, T const* q /*scaled*/, T const* k, T const* v,
                                                          online_softmax<T>& state, T* acc /*[head_dim]*/) {
  T score[key_block], max = state.max;
  for (size_t j = 0; j < count; ++j) {
    T s = 0;
    for (size_t d = 0; d < head_dim; ++d) s = fma(q[d], k[j * stride + d], s);
    score[j] = s;
    max = s > max ? s : max;
  }
  T const keep = std::exp(state.max - max);
  state.max = max;
  state.sum *= keep;
  for (size_t d = 0; d < head_dim; ++d) acc[d] *= keep;
  for (size_t j = 0; j < count; ++j) {
    T const p = std::exp(score[j] - max);
    state.sum += p;
    for (size_t d = 0; d < head_dim; ++d) acc[d] = fma(p, v[j * stride + d], acc[d]);
  }
}

// One query over `keys` keys; block(b, scratch) -> {k, v, stride} of keys 64b and on.
template <class T, class Block> T attention_row(size_t head_dim, T scale, size_t keys, T const* q, Block const& block, T* out) {
  T scaled[max_head_dim];
  online_softmax<T> state{-infinity<T>, 0};
  for (size_t d = 0; d < head_dim; ++d) scaled[d] = q[d] * scale, out[d] = 0;
  for (size_t j = 0; j < keys; j += key_block) {
    auto const [k, v, stride] = block(j / key_block);
    attention_block(head_dim, keys - j < key_block ? keys - j : key_block, stride, scaled, k, v, state, out);
  }
  for (size_t d = 0; d < head_dim; ++d) out[d] /= state.sum;
  return state.max + std::log(state.sum);
}
template <class T> struct key_value_block { T const* k; T const* v; size_t stride; };
}  // namespace detail

template <class T> void attention(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, size_t head_dim, T scale, T const* q,
                                  T const* k, T const* v, T* out, T* lse) {
  for (size_t s = 0; s < sequences; ++s) {
    size_t const first = static_cast<size_t>(cu_seqlens[s]), length = static_cast<size_t>(cu_seqlens[s + 1]) - first;
    parallel_for(on, length, 8, [=](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t)
        for (size_t h = 0; h < heads; ++h) {
          size_t const row = (first + t) * heads + h, stride = kv_heads * head_dim, base = first * stride + h / (heads / kv_heads) * head_dim;
          T const l = detail::attention_row(
              head_dim, scale, t + 1, q + row * head_dim,
              [=](size_t b) { return detail::key_value_block<T>{k + base + b * key_block * stride, v + base + b * key_block * stride, stride}; },
              out + row * head_dim);
          if (lse) lse[row] = l;
        }
    });
  }
}

template <class T> void attention_backward(cpu_context& on, size_t sequences, i32 const* cu_seqlens, size_t heads, size_t kv_heads, size_t head_dim, T scale,
                                           T const* q, T const* k, T const* v, T const* out, T const* lse, T const* dout, T* dq, T* dk, T* dv) {
  size_t const group = heads / kv_heads, stride = kv_heads * head_dim;
  parallel_for(on, sequences * kv_heads, 1, [=](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      size_t const first = static_cast<size_t>(cu_seqlens[task / kv_heads]), last = static_cast<size_t>(cu_seqlens[task / kv_heads + 1]);
      size_t const kv = task % kv_heads * head_dim;
      for (size_t t = first; t < last; ++t)
        for (size_t d = 0; d < head_dim; ++d) dk[t * stride + kv + d] = dv[t * stride + kv + d] = 0;
      for (size_t h = task % kv_heads * group; h < (task % kv_heads + 1) * group; ++h)
        for (size_t t = first; t < last; ++t) {
          size_t const row = (t * heads + h) * head_dim;
          T delta = 0;
          for (size_t d = 0; d < head_dim; ++d) delta = fma(dout[row + d], out[row + d], delta), dq[row + d] = 0;
          for (size_t j = first; j <= t; ++j) {
            size_t const key = j * stride + kv;
            T s = 0, dp = 0;
            for (size_t d = 0; d < head_dim; ++d) s = fma(q[row + d] * scale, k[key + d], s), dp = fma(dout[row + d], v[key + d], dp);
            T const p = std::exp(s - lse[t * heads + h]), ds = p * (dp - delta) * scale;
            for (size_t d = 0; d < head_dim; ++d) {
              dq[row + d] = fma(ds, k[key + d], dq[row + d]);
              dk[key + d] = fma(ds, q[row + d], dk[key + d]);
              dv[key + d] = fma(p, dout[row + d], dv[key + d]);
            }
          }
        }
    }
  });
}
}  // namespace weft::kernels
