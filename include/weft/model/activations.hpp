// activations.hpp — what a forward pass leaves for the backward pass, carved from one flat scratch; every buffer starts at a multiple of
// 16 elements.
#pragma once
#include <algorithm>

#include <weft/model/config.hpp>

namespace weft::model {
// What one layer computes. In training every buffer is its own; a forward pass without a backward lets buffers share bytes and leaves out
// what nobody reads (null).
template <class T> struct layer_room {
  T* input_normed;         // [tokens, hidden]
  T *q_raw, *k_raw;        // [tokens, heads, head_dim], [tokens, kv_heads, head_dim]: before the q/k norm; without one the same as q and k
  T *q, *k, *v;            // after the q/k norm and the rotation
  T* attended;             // [tokens, heads, head_dim]
  T* middle;               // [tokens, hidden]: the residual stream between attention and MLP
  T* post_normed;          // [tokens, hidden]
  T *gate, *up, *product;  // [tokens, intermediate]: silu(gate) * up = product
  accumulator<T>*input_rms, *post_rms, *q_rms, *k_rms;  // 1 / rms: [tokens] twice, [tokens, heads], [tokens, kv_heads]
  accumulator<T>* lse;                                  // [tokens, heads]: log-sum-exp of the attention row
};

// What the backward pass of one layer needs besides. The MLP's part and the attention's part are never alive together and share bytes.
template <class T> struct gradient_room {
  T *residual, *normed;                     // [tokens, hidden]
  T *gate, *up;                             // [tokens, intermediate]
  T *attended, *q, *k, *v, *q_raw, *k_raw;  // as above; q_raw and k_raw as q and k without a q/k norm
};

// Takes pieces of a scratch one after the other; with a null base it only counts.
template <class T> struct carver {
  T* base;
  size_t used = 0;
  T* operator()(size_t count) {
    T* const piece = base ? base + used : nullptr;
    used += (count + 15) / 16 * 16;
    return piece;
  }
  accumulator<T>* sums(size_t count) { return reinterpret_cast<accumulator<T>*>((*this)(count * (sizeof(accumulator<T>) / sizeof(T)))); }
};

template <class T> layer_room<T> carve_layer(config const& c, size_t tokens, carver<T>& take) {
  size_t const heads = size_t(c.heads), kv_heads = size_t(c.kv_heads), hidden = tokens * size_t(c.hidden),
               inner = tokens * size_t(c.intermediate);
  size_t const q = tokens * c.q_width(), kv = tokens * c.kv_width();
  layer_room<T> a{};
  a.input_normed = take(hidden);
  a.q = take(q), a.k = take(kv), a.v = take(kv);
  a.q_raw = c.qk_norm ? take(q) : a.q, a.k_raw = c.qk_norm ? take(kv) : a.k;
  a.attended = take(q);
  a.middle = take(hidden), a.post_normed = take(hidden);
  a.gate = take(inner), a.up = take(inner), a.product = take(inner);
  a.input_rms = take.sums(tokens), a.post_rms = take.sums(tokens), a.lse = take.sums(tokens * heads);
  if (c.qk_norm) a.q_rms = take.sums(tokens * heads), a.k_rms = take.sums(tokens * kv_heads);
  return a;
}

template <class T> gradient_room<T> carve_gradient(config const& c, size_t tokens, carver<T>& take) {
  size_t const hidden = tokens * size_t(c.hidden), inner = tokens * size_t(c.intermediate), q = tokens * c.q_width(),
               kv = tokens * c.kv_width();
  gradient_room<T> g{};
  g.residual = take(hidden), g.normed = take(hidden);
  carver<T> mlp = take;
  g.gate = mlp(inner), g.up = mlp(inner);
  g.attended = take(q), g.q = take(q), g.k = take(kv), g.v = take(kv);
  g.q_raw = c.qk_norm ? take(q) : g.q, g.k_raw = c.qk_norm ? take(kv) : g.k;
  take.used = std::max(take.used, mlp.used);
  return g;
}

// The whole scratch of a micro-batch. With `recompute` only the inputs of the layers are kept, and all layers take turns in one room.
template <class T> struct activations {
  config c;
  size_t tokens;
  carver<T> take;
  T* inputs;                  // [layers + 1, tokens, hidden]: what each layer reads, then what the final norm reads
  accumulator<T>* final_rms;  // [tokens]
  gradient_room<T> gradient;
  size_t stride, total;  // from the room of one layer to the next, elements

  activations(config const& shape, size_t count, bool recompute, T* scratch) : c(shape), tokens(count), take{scratch} {
    inputs = take(size_t(c.layers + 1) * tokens * size_t(c.hidden));
    final_rms = take.sums(tokens);
    gradient = carve_gradient(c, tokens, take);
    carver<T> next = take;
    carve_layer(c, tokens, next);
    size_t const room = next.used - take.used;
    stride = recompute ? 0 : room;
    total = take.used + (recompute ? 1 : size_t(c.layers)) * room;
  }
  T* input(i32 layer) const { return inputs + size_t(layer) * tokens * size_t(c.hidden); }
  layer_room<T> layer(i32 i) const {
    carver<T> at{take.base, take.used + size_t(i) * stride};
    return carve_layer(c, tokens, at);
  }
};

// Elements that forward and backward of a micro-batch of `tokens` need, where an element has so many bytes.
inline size_t activation_count(config const& c, size_t tokens, bool recompute, size_t bytes = sizeof(f32)) {
  return bytes == sizeof(bf16) ? activations<bf16>(c, tokens, recompute, nullptr).total
                               : activations<f32>(c, tokens, recompute, nullptr).total;
}

// The room of a pass without a backward: one layer's, in as few bytes as its order allows.
template <class T> layer_room<T> carve_paged(config const& c, size_t rows, carver<T>& take) {
  size_t const hidden = rows * size_t(c.hidden), inner = rows * size_t(c.intermediate), q = rows * c.q_width(), kv = rows * c.kv_width();
  layer_room<T> a{};
  a.input_normed = a.post_normed = take(hidden);
  a.middle = take(hidden);
  carver<T> mlp = take;
  a.gate = a.product = mlp(inner), a.up = mlp(inner);
  a.q = a.q_raw = take(q), a.k = a.k_raw = take(kv), a.v = take(kv), a.attended = take(q);
  take.used = std::max(take.used, mlp.used);
  return a;
}

// Elements of T that forward_paged of `rows` rows needs: the residual stream and that room.
inline size_t paged_workspace_count(config const& c, size_t rows) {
  carver<float> take{nullptr};
  take(rows * size_t(c.hidden));
  carve_paged(c, rows, take);
  return take.used;
}
}  // namespace weft::model
