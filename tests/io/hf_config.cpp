// hf_config.cpp — both spellings of config.json give the same model; everything unsupported or absurd is refused by key and value.
#include <weft/io/hf_config.hpp>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;
using weft::model::rope_scaling;

namespace {
json base(std::string const& type) {
  return json::object{{"architectures", json::array{"XForCausalLM"}},
                      {"model_type", type},
                      {"hidden_size", 96},
                      {"intermediate_size", 224},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 6},
                      {"num_key_value_heads", 2},
                      {"vocab_size", 300},
                      {"max_position_embeddings", 512},
                      {"hidden_act", "silu"}};
}
json with(json root, std::string_view key, json value) {
  root.set(key, std::move(value));
  return root;
}
hf_config parse(json const& root) { return parse_hf_config(root, "config.json"); }
json rope(char const* name, char const* type) {
  return json::object{
      {name, type}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 64}};
}
}  // namespace

TEST_CASE("hf_config: the types imply biases and norms") {
  auto const llama = parse(base("llama")).model, qwen2 = parse(base("qwen2")).model, qwen3 = parse(base("qwen3")).model,
             mistral = parse(base("mistral")).model;
  CHECK(llama.head_dim == 16);
  CHECK(llama.kv_heads == 2);
  CHECK(llama.rope_theta == 10000);
  CHECK(llama.rms_norm_eps == 1e-6f);
  CHECK(!(llama.qkv_bias || llama.o_bias || llama.mlp_bias || llama.qk_norm || llama.tied));
  CHECK((qwen2.qkv_bias && !qwen2.o_bias && !qwen2.qk_norm));
  CHECK((qwen3.qk_norm && !qwen3.qkv_bias));
  CHECK(!(mistral.qkv_bias || mistral.qk_norm));
  auto const biased = parse(with(with(base("llama"), "attention_bias", true), "mlp_bias", true)).model;
  CHECK((biased.qkv_bias && biased.o_bias && biased.mlp_bias));
  CHECK(parse(with(base("qwen3"), "head_dim", 128)).model.head_dim == 128);
  CHECK(parse(with(base("llama"), "num_key_value_heads", nullptr)).model.kv_heads == 6);
  CHECK(parse(with(base("llama"), "tie_word_embeddings", true)).model.tied);
}

TEST_CASE("hf_config: transformers 4 and 5 spell the same thing differently") {
  auto const old_form = parse(with(with(base("llama"), "rope_theta", 500000.0), "rope_scaling", rope("rope_type", "llama3"))).model;
  json parameters = rope("rope_type", "llama3");
  parameters.set("rope_theta", 500000.0);
  CHECK(old_form == parse(with(base("llama"), "rope_parameters", parameters)).model);
  CHECK(old_form.rope.type == rope_scaling::llama3);
  CHECK(old_form.rope.factor == 8);
  CHECK(old_form.rope.original_max_positions == 64);
  CHECK(old_form == parse(with(with(base("llama"), "rope_theta", 500000), "rope_scaling", rope("type", "llama3"))).model);
  // rope_scaling wins over rope_parameters; rope_theta inside wins over the one at top level
  CHECK(parse(with(with(base("llama"), "rope_parameters", rope("rope_type", "llama3")), "rope_scaling", rope("type", "linear")))
            .model.rope.type == rope_scaling::linear);
  CHECK(parse(with(with(base("llama"), "rope_theta", 5), "rope_parameters", json::object{{"rope_theta", 7}})).model.rope_theta == 7);
  CHECK(parse(with(base("qwen2"), "rope_scaling", json::object{{"type", "yarn"}, {"factor", 4.0}})).model.rope.original_max_positions ==
        512);
  CHECK(parse(with(base("llama"), "torch_dtype", "bfloat16")).dtype == "bfloat16");
  CHECK(parse(with(with(base("llama"), "torch_dtype", "bfloat16"), "dtype", "float32")).dtype == "float32");
  CHECK(parse(with(base("qwen2"), "sliding_window", 4096)).model.layers == 2);  // use_sliding_window is off
}

TEST_CASE("hf_config: an absent key means what it means to transformers") {
  auto const without = [](std::string const& type, std::string const& key) {
    json const whole = base(type);
    json::object kept;
    for (auto const& member : *whole.as_object())
      if (member.first != key) kept.push_back(member);
    return json(std::move(kept));
  };
  CHECK(parse(without("llama", "num_key_value_heads")).model.kv_heads == 6);
  CHECK(parse(with(with(without("qwen2", "num_key_value_heads"), "num_attention_heads", 32), "hidden_size", 128)).model.kv_heads == 32);
  CHECK_REFUSED(parse(without("mistral", "num_key_value_heads")), "num_attention_heads 6 is not a multiple of num_key_value_heads 8");
  CHECK(parse(with(base("qwen2"), "num_key_value_heads", nullptr)).model.kv_heads == 6);
  CHECK(parse(base("qwen3")).model.head_dim == 128);
  CHECK(parse(base("qwen2")).model.head_dim == 16);
  CHECK(parse(without("llama", "max_position_embeddings")).model.max_positions == 2048);
  CHECK(parse(without("qwen2", "max_position_embeddings")).model.max_positions == 32768);
  CHECK(parse(with(without("mistral", "max_position_embeddings"), "sliding_window", nullptr)).model.max_positions == 131072);
  CHECK_REFUSED(parse(without("mistral", "max_position_embeddings")), "sliding_window is absent, which means 4096, and in use");
  CHECK(parse(with(base("llama"), "torch_dtype", "torch.float16")).dtype == "float16");
  CHECK(parse(with(with(base("qwen2"), "use_sliding_window", true), "max_window_layers", 2)).model.layers == 2);  // no layer has it
  CHECK_REFUSED(parse(with(with(base("qwen3"), "use_sliding_window", true), "max_window_layers", 1)), "in use");
}

TEST_CASE("hf_config: a critic that began as a language model is written as one with a score head") {
  io_test::temporary_folder folder;
  for (std::string type : {"llama", "qwen2", "qwen3", "mistral"}) {
    hf_config config = parse(base(type));
    config.model.labels = 1;
    write_hf_config(folder.path, config, "float32");
    hf_config const again = read_hf_config(folder.path);
    CHECK(again.model == config.model);
    CHECK(again.found.find("architectures")->dump().find("ForSequenceClassification") != std::string::npos);
    CHECK(again.found.find("id2label")->dump() == R"({"0":"LABEL_0"})");
  }
}

TEST_CASE("hf_config: eos ids come from both files, each once") {
  io_test::temporary_folder folder;
  CHECK(parse(with(base("llama"), "eos_token_id", 2)).eos_ids == std::vector<weft::i32>{2});
  CHECK(parse(base("llama")).eos_ids.empty());
  auto const config = parse(with(base("llama"), "eos_token_id", json::array{2, 5}));
  CHECK(read_eos_ids(folder.path, config) == std::vector<weft::i32>{2, 5});
  write_file(folder / "generation_config.json", R"({"eos_token_id":[5,7]})");
  CHECK(read_eos_ids(folder.path, config) == std::vector<weft::i32>{2, 5, 7});
  io_test::overwrite(folder / "generation_config.json", R"({"eos_token_id":300})");
  CHECK_REFUSED(read_eos_ids(folder.path, config), "eos_token_id 300 is outside the vocabulary of 300");
  io_test::overwrite(folder / "generation_config.json", R"({"eos_token_id":"x"})");
  CHECK_REFUSED(read_eos_ids(folder.path, config), "token id or a list");
}

TEST_CASE("hf_config: what is unsupported or absurd is refused by key and value, and takes no memory") {
  struct attack {
    char const* key;
    json value;
    char const* message;
  };
  std::vector<attack> const attacks{
      {"model_type", "gpt2", "model_type is 'gpt2'"},
      {"model_type", nullptr, "model_type is ''"},
      {"architectures", json::array{"LlamaForTokenClassification"}, "LlamaForTokenClassification"},
      {"hidden_size", std::int64_t{1} << 31, "hidden_size is '2147483648'"},
      {"hidden_size", 0, "hidden_size is '0'"},
      {"hidden_size", -96, "hidden_size is '-96'"},
      {"hidden_size", 96.0, "hidden_size is '96.0'; it must be an integer"},
      {"hidden_size", "96", "hidden_size is '\"96\"'"},
      {"hidden_size", nullptr, "hidden_size is 'null'"},
      {"hidden_size", 97, "hidden_size 97 is not a multiple of num_attention_heads 6"},
      {"num_attention_heads", 0, "num_attention_heads is '0'"},
      {"num_key_value_heads", 4, "num_attention_heads 6 is not a multiple of num_key_value_heads 4"},
      {"num_key_value_heads", 0, "num_key_value_heads is '0'"},
      {"head_dim", 17, "head_dim is 17; it must be even"},
      {"head_dim", 0, "head_dim is '0'"},
      {"head_dim", 258, "head_dim is '258'"},
      {"num_hidden_layers", 1'000'000'000, "num_hidden_layers is '1000000000'; it must be an integer from 1 to 4096"},
      {"vocab_size", 0, "vocab_size is '0'"},
      {"max_position_embeddings", 0, "max_position_embeddings is '0'"},
      {"rms_norm_eps", 0, "rms_norm_eps is '0'"},
      {"rms_norm_eps", "1e-6", "rms_norm_eps is"},
      {"rope_theta", -1, "rope_theta is '-1'"},
      {"hidden_act", "gelu", "hidden_act is 'gelu'; only silu"},
      {"rope_scaling", json::object{{"type", "dynamic"}, {"factor", 2.0}}, "rope_type is 'dynamic'; supported are"},
      {"rope_scaling", json::object{{"type", "linear"}}, "factor is missing"},
      {"rope_scaling", "linear", "it must be an object or null"},
      {"rope_scaling", json::object{{"rope_type", 3}}, "rope_type is '3'"},
      {"rope_scaling", json::object{{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}},
       "high_freq_factor 4 must be above"},
      {"rope_scaling", json::object{{"rope_type", "llama3"}, {"factor", 8}, {"high_freq_factor", 4}}, "low_freq_factor is missing"},
      {"rope_scaling", json::object{{"rope_type", "longrope"}, {"factor", 2.0}}, "rope_type is 'longrope'; supported are"},
      {"rope_scaling", json::object{{"rope_type", "yarn"}, {"factor", 0.5}}, "factor is '0.5'"},
      {"rope_parameters", json::object{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor"},
      {"is_causal", false, "is_causal is false"},
      {"rope_parameters", json::object{{"full_attention", json::object{}}}, "differ between layer types"},
      {"partial_rotary_factor", 0.5, "partial_rotary_factor"},
      {"layer_types", json::array{"full_attention", "sliding_attention"}, "layer_types holds '\"sliding_attention\"'"},
      {"layer_types", json::array{"full_attention"}, "must name each of the 2 layers"},
      {"quantization_config", json::object{}, "quantized weights are not supported"},
      {"attention_dropout", 0.1, "attention_dropout"},
      {"tie_word_embeddings", 1, "tie_word_embeddings is '1'"},
      {"eos_token_id", -1, "eos_token_id is '-1'"},
  };
  for (auto const& [key, value, message] : attacks) {
    json const root = with(base("llama"), key, value);
    allocation::start();
    std::string const said = io_test::refusal([&] { parse(root); });
    CHECK_MESSAGE(io_test::has(said, message), key, " wanted: ", message, "; refusal: ", said);
    CHECK(io_test::has(said, "config.json: "));
    CHECK(allocation::largest() < 10'000);
  }
  CHECK_REFUSED(parse(with(with(with(base("qwen2"), "sliding_window", 4096), "use_sliding_window", true), "max_window_layers", 0)),
                "sliding_window is '4096' and in use");
  CHECK_REFUSED(parse(with(base("mistral"), "sliding_window", 4096)), "sliding_window is '4096' and in use");
  CHECK_REFUSED(parse(json::array{}), "must be a JSON object");
}

TEST_CASE("hf_config: a score head has the labels that the file names") {
  json const root = with(base("qwen2"), "architectures", json::array{"Qwen2ForSequenceClassification"});
  CHECK(parse(root).model.labels == 2);  // transformers' default
  CHECK(parse(with(root, "num_labels", 1)).model.labels == 1);
  CHECK(parse(with(root, "id2label", json::object{{"0", "LABEL_0"}})).model.labels == 1);
}

TEST_CASE("hf_config: writing keeps what was found, and a new file reads back as the same model") {
  io_test::temporary_folder folder;
  json const root = with(with(base("qwen3"), "torch_dtype", "float32"), "unknown_key", json::object{{"kept", 1.5}});
  write_hf_config(folder.path, parse(root), "bfloat16");
  auto const again = read_hf_config(folder.path);
  CHECK(again.dtype == "bfloat16");
  CHECK(again.found.find("unknown_key")->dump() == R"({"kept":1.5})");
  CHECK(again.model == parse(root).model);
  for (std::string type : {"llama", "qwen2", "qwen3", "mistral"})
    for (int labels : {0, 1, 3}) {
      auto model = parse(base(type)).model;
      model.labels = labels;
      auto const back = parse(hf_config_json(model, type, {2, 3}));
      CHECK(back.model == model);
      CHECK(back.eos_ids == std::vector<weft::i32>{2, 3});
    }
}
