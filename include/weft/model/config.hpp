// config.hpp — the run-time shape of a decoder: RMSNorm, RoPE, grouped queries, SwiGLU (Llama, Mistral, Qwen2, Qwen3). It is a setting:
// trivially copyable. Which model type sets which flag is told in io/hf_config.hpp; nothing here depends on a name.
#pragma once
#include <weft/element.hpp>

namespace weft::model {
// Scaled rotary positions, with the field names of Hugging Face's rope_parameters.
struct rope_scaling {
  enum kind : i32 { none, linear, llama3, yarn };
  kind type = none;
  f32 factor = 1;                                 // all but none
  i32 original_max_positions = 0;                 // llama3, yarn
  f32 low_freq_factor = 1, high_freq_factor = 4;  // llama3
  f32 beta_fast = 32, beta_slow = 1;              // yarn
  f32 attention_factor = 0;            // yarn: multiplies cos and sin; 0: follows from factor (and mscale, mscale_all_dim if both are set)
  f32 mscale = 0, mscale_all_dim = 0;  // yarn; 0: not set
  bool truncate = true;                // yarn: round the correction range to whole dimensions

  bool operator==(rope_scaling const&) const = default;
};

struct config {
  i32 layers = 0, hidden = 0, intermediate = 0;
  i32 heads = 0, kv_heads = 0, head_dim = 0;  // head_dim is even and need not be hidden / heads
  i32 vocab = 0, max_positions = 0;
  f32 rms_norm_eps = 1e-6f, rope_theta = 10000;
  rope_scaling rope = {};
  bool qk_norm = false;  // RMSNorm over each head of q and k (Qwen3)
  bool tied = false;     // the LM head is the embedding
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  i32 labels = 0;  // 0: language model; otherwise a score head [labels, hidden] in place of the LM head

  bool operator==(config const&) const = default;
  constexpr size_t q_width() const { return size_t(heads) * size_t(head_dim); }
  constexpr size_t kv_width() const { return size_t(kv_heads) * size_t(head_dim); }
};
}  // namespace weft::model
