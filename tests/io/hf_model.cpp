#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include <weft/io/hf_config.hpp>
#include <weft/io/hf_model.hpp>

#include "model/support.hpp"

using namespace test;

namespace {
struct temporary_folder {
  io::path at;
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    at = name;
  }
  ~temporary_folder() { std::filesystem::remove_all(at); }
};

// The tensors of a config, to be spoilt before they are written.
std::vector<io::tensor_source> tensors_of(config const& c, std::vector<float> const& w) {
  std::vector<io::tensor_source> all;
  model::for_each_tensor(c, [&](model::tensor const& t) {
    all.push_back({model::full_name(t), io::dtype::F32, io::shape_of(t), w.data() + t.offset});
  });
  return all;
}
std::string refusal(io::path const& folder, config const& c) {
  try {
    io::hf_weights file(folder, c);
  } catch (io::input_error const& e) { return e.what(); }
  return "";
}
bool mentions(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("weights of every family come back from a folder as they were written") {
  temporary_folder folder;
  for (family const& f : families())
    for (i32 labels : {0, 1, 3}) {
      CAPTURE(f.name);
      config c = f.c;
      c.labels = labels;
      std::vector<float> const w = random_weights<float>(c, 5);
      io::write_hf_weights(folder.at, c, w.data(), io::dtype::F32);
      io::hf_weights const file(folder.at, c);
      CHECK(file.has_score_head() == (labels > 0));
      std::vector<float> again(w.size());
      file.read(again.data());
      CHECK(same_bits(again, w));
      std::vector<double> wide(w.size());
      file.read(wide.data());
      CHECK(std::equal(w.begin(), w.end(), wide.begin(), [](float a, double b) { return double(a) == b; }));
      io::write_hf_weights(folder.at, c, wide.data(), io::dtype::BF16);
      io::hf_weights(folder.at, c).read(again.data());
      CHECK(relative_distance(again, w) < 1.0 / 256);
    }
}

TEST_CASE("a value model may start from a language model: its score head stays as it was") {
  temporary_folder folder;
  for (bool tied : {false, true}) {
    config c = families()[0].c;
    c.tied = tied;
    std::vector<float> const w = random_weights<float>(c, 5);
    io::write_hf_weights(folder.at, c, w.data(), io::dtype::F32);
    config value = c;
    value.labels = 1;
    std::vector<float> expected = random_weights<float>(value, 6), found = expected;
    io::hf_weights const file(folder.at, value);
    CHECK(!file.has_score_head());
    file.read(found.data());
    size_t const head = model::layout_of(value).head;
    std::copy_n(w.begin(), head, expected.begin());
    CHECK(same_bits(found, expected));
  }
}

TEST_CASE("a file that does not fit its config is refused with the tensor's name") {
  temporary_folder folder;
  io::path const file = folder.at / "model.safetensors";
  config const c = families()[0].c;
  std::vector<float> const w = random_weights<float>(c, 5);
  std::vector<io::tensor_source> tensors = tensors_of(c, w);
  CHECK(mentions(refusal(folder.at, c), "model.safetensors: No such file"));
  SUBCASE("missing") {
    tensors.erase(tensors.begin() + 4);
    io::write_safetensors(file, tensors);
    CHECK(mentions(refusal(folder.at, c), "tensor model.layers.0.self_attn.v_proj.weight is missing"));
  }
  SUBCASE("shape") {
    std::swap(tensors[2].shape[0], tensors[2].shape[1]);
    tensors[2].shape[0] /= 2, tensors[2].shape[1] *= 2;
    io::write_safetensors(file, tensors);
    CHECK(
        mentions(refusal(folder.at, c), "tensor model.layers.0.self_attn.q_proj.weight has shape [12, 48]; config.json implies [24, 24]"));
  }
  SUBCASE("rank") {
    tensors[1].shape = {1, 24};
    io::write_safetensors(file, tensors);
    CHECK(mentions(refusal(folder.at, c), "tensor model.layers.0.input_layernorm.weight has shape [1, 24]; config.json implies [24]"));
  }
  SUBCASE("a bias that the config does not know") {
    tensors.push_back({"model.layers.0.self_attn.q_proj.bias", io::dtype::F32, {24}, w.data()});
    io::write_safetensors(file, tensors);
    CHECK(mentions(refusal(folder.at, c), "'model.layers.0.self_attn.q_proj.bias' does not belong"));
  }
  SUBCASE("no head") {
    tensors.pop_back();
    io::write_safetensors(file, tensors);
    CHECK(mentions(refusal(folder.at, c), "tensor lm_head.weight is missing"));
    config tied = c;
    tied.tied = true;
    CHECK(refusal(folder.at, tied) == "");
  }
  SUBCASE("what is harmless") {
    tensors.push_back({"score.weight", io::dtype::F32, {2, 24}, w.data()});
    tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", io::dtype::F32, {4}, w.data()});
    io::write_safetensors(file, tensors);
    CHECK(refusal(folder.at, c) == "");
  }
  SUBCASE("more layers than a file could hold cost no memory") {
    io::write_safetensors(file, tensors);
    config huge = c;
    huge.layers = 4096;
    CHECK(mentions(refusal(folder.at, huge), "tensor model.layers.2.input_layernorm.weight is missing"));
    huge = c, huge.vocab = 1 << 24;
    CHECK(mentions(refusal(folder.at, huge), "tensor model.embed_tokens.weight has shape [37, 24]; config.json implies [16777216, 24]"));
  }
}

TEST_CASE("the golden folders load with the config that they state") {
  for (char const* name : {"llama_tiny", "llama31_rope_tiny", "qwen2_bias_tiny", "qwen3_tiny"}) {
    io::path const folder = io::path("tests/data/hf") / name;
    CHECK(refusal(folder, io::read_hf_config(folder).model) == "");
  }
}
