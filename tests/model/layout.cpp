#include <doctest/doctest.h>

#include <set>

#include "support.hpp"

using namespace test;

TEST_CASE("tensors stand in order, aligned, without overlap, and fill the arena") {
  for (family const& f : families())
    for (i32 labels : {0, 1, 3}) {
      CAPTURE(f.name);
      CAPTURE(labels);
      config c = f.c;
      c.labels = labels;
      size_t end = 0;
      std::set<std::string> names;
      model::for_each_tensor(c, [&](model::tensor const& t) {
        CHECK(t.offset % 16 == 0);
        CHECK(t.offset >= end);
        CHECK(t.offset < end + 16);
        CHECK(names.insert(model::full_name(t)).second);
        end = t.offset + t.size();
      });
      CHECK(model::parameter_count(c) == (end + 15) / 16 * 16);
      CHECK(names.count("lm_head.weight") == size_t(labels == 0 && !c.tied));
      CHECK(names.count("score.weight") == size_t(labels > 0));
      CHECK(names.count("model.layers.1.self_attn.q_norm.weight") == size_t(c.qk_norm));
      CHECK(names.count("model.layers.0.self_attn.k_proj.bias") == size_t(c.qkv_bias));
      CHECK(names.count("model.layers.0.self_attn.o_proj.bias") == size_t(c.o_bias));
      CHECK(names.count("model.layers.1.mlp.down_proj.bias") == size_t(c.mlp_bias));
    }
}

TEST_CASE("the view of a layer points at the tensors of that layer") {
  for (family const& f : families()) {
    CAPTURE(f.name);
    std::vector<float> arena(model::parameter_count(f.c));
    auto const at = [&](std::string const& name) {
      float* found = nullptr;
      model::for_each_tensor(f.c, [&](model::tensor const& t) { found = model::full_name(t) == name ? arena.data() + t.offset : found; });
      return found;
    };
    for (i32 i = 0; i < f.c.layers; ++i) {
      auto const v = model::view_of(f.c, model::layout_of(f.c), arena.data(), i);
      std::string const layer = "model.layers." + std::to_string(i) + ".";
      CHECK(v.input_norm == at(layer + "input_layernorm.weight"));
      CHECK(v.q == at(layer + "self_attn.q_proj.weight"));
      CHECK(v.k == at(layer + "self_attn.k_proj.weight"));
      CHECK(v.v == at(layer + "self_attn.v_proj.weight"));
      CHECK(v.o == at(layer + "self_attn.o_proj.weight"));
      CHECK(v.q_bias == at(layer + "self_attn.q_proj.bias"));
      CHECK(v.k_bias == at(layer + "self_attn.k_proj.bias"));
      CHECK(v.v_bias == at(layer + "self_attn.v_proj.bias"));
      CHECK(v.o_bias == at(layer + "self_attn.o_proj.bias"));
      CHECK(v.q_norm == at(layer + "self_attn.q_norm.weight"));
      CHECK(v.k_norm == at(layer + "self_attn.k_norm.weight"));
      CHECK(v.post_norm == at(layer + "post_attention_layernorm.weight"));
      CHECK(v.gate == at(layer + "mlp.gate_proj.weight"));
      CHECK(v.up == at(layer + "mlp.up_proj.weight"));
      CHECK(v.down == at(layer + "mlp.down_proj.weight"));
      CHECK(v.gate_bias == at(layer + "mlp.gate_proj.bias"));
      CHECK(v.up_bias == at(layer + "mlp.up_proj.bias"));
      CHECK(v.down_bias == at(layer + "mlp.down_proj.bias"));
    }
    CHECK(model::head_weight(f.c, arena.data()) == at(f.c.tied ? "model.embed_tokens.weight" : "lm_head.weight"));
  }
}
