// layout.hpp — where each tensor lies in the flat parameter arena. Tensors stand in the order in which a forward pass reads them and each
// starts at a multiple of 16 elements. Gradients and moments mirror the arena, so that optimizer, norm and checkpoint see one array. The
// gaps between tensors hold zeros for ever.
#pragma once
#include <array>
#include <string>

#include <weft/model/config.hpp>

namespace weft::model {
// Offsets in elements; those of a layer's tensors count from the start of that layer. An absent tensor (its shape has 0 rows) takes no
// room.
struct layout {
  size_t embedding = 0;                                 // [vocab, hidden]
  size_t layers = 0, layer_size = 0;                    // start of the first layer; from one layer to the next
  size_t input_norm = 0;                                // [hidden]
  size_t q = 0, k = 0, v = 0;                           // [heads * head_dim, hidden], [kv_heads * head_dim, hidden] twice
  size_t q_bias = 0, k_bias = 0, v_bias = 0;            // [heads * head_dim], [kv_heads * head_dim] twice
  size_t q_norm = 0, k_norm = 0;                        // [head_dim]
  size_t o = 0, o_bias = 0;                             // [hidden, heads * head_dim], [hidden]
  size_t post_norm = 0;                                 // [hidden]
  size_t gate = 0, up = 0, gate_bias = 0, up_bias = 0;  // [intermediate, hidden] twice, [intermediate] twice
  size_t down = 0, down_bias = 0;                       // [hidden, intermediate], [hidden]
  size_t final_norm = 0;                                // [hidden]
  size_t head = 0;                                      // lm_head [vocab, hidden], the embedding when tied, or score [labels, hidden]
  size_t total = 0;                                     // elements of the arena
};

// One tensor of a checkpoint; a vector has cols 0.
struct tensor {
  i32 layer;         // -1: outside the layers
  char const* name;  // Hugging Face's, inside a layer without "model.layers.N."
  size_t offset, rows, cols;
  constexpr size_t size() const { return cols ? rows * cols : rows; }
};
inline std::string full_name(tensor const& t) {
  return t.layer < 0 ? std::string(t.name) : "model.layers." + std::to_string(t.layer) + "." + t.name;
}

namespace detail {
struct entry {
  size_t layout::* place;
  char const* name;
  size_t rows, cols;
  constexpr size_t room() const { return (rows * (cols ? cols : 1) + 15) / 16 * 16; }
};
constexpr std::array<entry, 1> first_tensors(config const& c) {
  return {{{&layout::embedding, "model.embed_tokens.weight", size_t(c.vocab), size_t(c.hidden)}}};
}
constexpr std::array<entry, 18> layer_tensors(config const& c) {
  size_t const hidden = size_t(c.hidden), inner = size_t(c.intermediate), q = c.q_width(), kv = c.kv_width();
  auto const if_ = [](bool present, size_t rows) { return present ? rows : size_t{}; };
  return {{{&layout::input_norm, "input_layernorm.weight", hidden, 0},
           {&layout::q, "self_attn.q_proj.weight", q, hidden},
           {&layout::k, "self_attn.k_proj.weight", kv, hidden},
           {&layout::v, "self_attn.v_proj.weight", kv, hidden},
           {&layout::q_bias, "self_attn.q_proj.bias", if_(c.qkv_bias, q), 0},
           {&layout::k_bias, "self_attn.k_proj.bias", if_(c.qkv_bias, kv), 0},
           {&layout::v_bias, "self_attn.v_proj.bias", if_(c.qkv_bias, kv), 0},
           {&layout::q_norm, "self_attn.q_norm.weight", if_(c.qk_norm, size_t(c.head_dim)), 0},
           {&layout::k_norm, "self_attn.k_norm.weight", if_(c.qk_norm, size_t(c.head_dim)), 0},
           {&layout::o, "self_attn.o_proj.weight", hidden, q},
           {&layout::o_bias, "self_attn.o_proj.bias", if_(c.o_bias, hidden), 0},
           {&layout::post_norm, "post_attention_layernorm.weight", hidden, 0},
           {&layout::gate, "mlp.gate_proj.weight", inner, hidden},
           {&layout::up, "mlp.up_proj.weight", inner, hidden},
           {&layout::gate_bias, "mlp.gate_proj.bias", if_(c.mlp_bias, inner), 0},
           {&layout::up_bias, "mlp.up_proj.bias", if_(c.mlp_bias, inner), 0},
           {&layout::down, "mlp.down_proj.weight", hidden, inner},
           {&layout::down_bias, "mlp.down_proj.bias", if_(c.mlp_bias, hidden), 0}}};
}
constexpr std::array<entry, 2> last_tensors(config const& c) {
  bool const score = c.labels > 0;
  size_t const head_rows = size_t(score ? c.labels : c.tied ? 0 : c.vocab);
  return {{{&layout::final_norm, "model.norm.weight", size_t(c.hidden), 0},
           {&layout::head, score ? "score.weight" : "lm_head.weight", head_rows, size_t(c.hidden)}}};
}
}  // namespace detail

constexpr layout layout_of(config const& c) {
  layout l;
  auto const place = [&](auto const& tensors, size_t at) {
    for (auto const& t : tensors) l.*t.place = at, at += t.room();
    return at;
  };
  l.layers = place(detail::first_tensors(c), 0);
  l.layer_size = place(detail::layer_tensors(c), 0);
  l.total = place(detail::last_tensors(c), l.layers + size_t(c.layers) * l.layer_size);
  if (c.tied && c.labels == 0) l.head = l.embedding;
  return l;
}
constexpr size_t parameter_count(config const& c) { return layout_of(c).total; }

// Calls f(tensor) for every tensor that the checkpoint holds, in the order of the arena.
template <class F> void for_each_tensor(config const& c, F&& f) {
  layout const l = layout_of(c);
  auto const visit = [&](auto const& tensors, size_t base, i32 layer) {
    for (auto const& t : tensors)
      if (t.rows) f(tensor{layer, t.name, base + l.*t.place, t.rows, t.cols});
  };
  visit(detail::first_tensors(c), 0, -1);
  for (i32 i = 0; i < c.layers; ++i) visit(detail::layer_tensors(c), l.layers + size_t(i) * l.layer_size, i);
  visit(detail::last_tensors(c), 0, -1);
}

// The tensors of one layer as pointers into weights (T const) or gradients (T); null where the model has none.
template <class T> struct layer_view {
  T *input_norm, *q, *k, *v, *q_bias, *k_bias, *v_bias, *q_norm, *k_norm, *o, *o_bias;
  T *post_norm, *gate, *up, *gate_bias, *up_bias, *down, *down_bias;
};
template <class T> constexpr layer_view<T> view_of(config const& c, layout const& l, T* arena, i32 layer) {
  T* const at = arena + l.layers + size_t(layer) * l.layer_size;
  layer_view<T> view{};
  view.input_norm = at + l.input_norm, view.post_norm = at + l.post_norm;
  view.q = at + l.q, view.k = at + l.k, view.v = at + l.v, view.o = at + l.o;
  view.gate = at + l.gate, view.up = at + l.up, view.down = at + l.down;
  if (c.qkv_bias) view.q_bias = at + l.q_bias, view.k_bias = at + l.k_bias, view.v_bias = at + l.v_bias;
  if (c.qk_norm) view.q_norm = at + l.q_norm, view.k_norm = at + l.k_norm;
  if (c.o_bias) view.o_bias = at + l.o_bias;
  if (c.mlp_bias) view.gate_bias = at + l.gate_bias, view.up_bias = at + l.up_bias, view.down_bias = at + l.down_bias;
  return view;
}
}  // namespace weft::model
