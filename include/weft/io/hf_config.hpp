// hf_config.hpp — config.json and generation_config.json of Hugging Face, in the spellings of transformers 4 (rope_theta, rope_scaling,
// torch_dtype) and 5 (rope_parameters, dtype). What this engine does not compute is refused by key and value, and so are sizes beyond
// the limits below: everything is checked before a byte of a model is allocated.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json.hpp>
#include <weft/model/config.hpp>

namespace weft::io {
struct hf_config {
  model::config model;
  std::string model_type;    // "llama", "mistral", "qwen2", "qwen3"
  std::string dtype;         // of the weights as the file states it; empty: not stated
  std::vector<i32> eos_ids;  // may be empty
  json found;                // the whole file, so that it can be written back as it was
};

namespace detail {
inline std::vector<i32> ids_of(json const& from, std::string_view key, std::string const& where) {  // an id, a list of ids, or nothing
  std::vector<i32> ids;
  json const* value = from.find(key);
  if (!value || value->is_null()) return ids;
  auto add = [&](json const& id) {
    if (!id.in_range(0, std::numeric_limits<i32>::max()))
      refuse("{}: {} is {}; it must be a token id or a list of token ids", where, key, show(value->dump(), 60));
    ids.push_back(static_cast<i32>(id.to_int()));
  };
  if (!value->as_array()) add(*value);
  else
    for (json const& id : *value->as_array()) add(id);
  return ids;
}

// As transformers reads it: rope_scaling wins over rope_parameters; rope_theta is looked up inside, then at top level; `type` is an old
// name of rope_type.
inline void read_rope(json const& root, std::string const& where, model::config& m) {
  static json const nothing{json::object{}};
  auto given = [&](char const* key) {
    json const* value = root.find(key);
    if (value && !value->is_null() && !value->as_object())
      refuse("{}: {} is {}; it must be an object or null", where, key, show(value->dump(), 60));
    return value && value->as_object() ? value : nullptr;
  };
  json const* chosen = given("rope_scaling");
  char const* name = "rope_scaling";
  if (json const* parameters = given("rope_parameters"); !chosen && parameters) {
    chosen = parameters, name = "rope_parameters";
    if (parameters->find("full_attention") || parameters->find("sliding_attention"))
      refuse("{}: rope_parameters differ between layer types, which is not supported", where);
  }
  json const& rope = chosen ? *chosen : nothing;
  std::string const within = where + ": " + name;
  double const top = number_or(root, "rope_theta", 10000, 1, 1e12, where);
  m.rope_theta = static_cast<f32>(number_or(rope, "rope_theta", top, 1, 1e12, within));
  for (json const* at : {&root, &rope})
    if (number_or(*at, "partial_rotary_factor", 1, 0, 1, where) != 1)
      refuse("{}: partial_rotary_factor is below 1, which is not supported", where);
  std::string const type = string_or(rope, "rope_type", string_or(rope, "type", "default", within), within);
  model::rope_scaling& r = m.rope;
  if (type == "default") return;
  if (type == "linear") r.type = model::rope_scaling::linear;
  else if (type == "llama3") r.type = model::rope_scaling::llama3;
  else if (type == "yarn") r.type = model::rope_scaling::yarn;
  else refuse("{}: rope_type is {}; supported are default, linear, llama3 and yarn", within, show(type, 60));
  if (!rope.find("factor")) refuse("{}: factor is missing for rope_type {}", within, type);
  r.factor = static_cast<f32>(number_or(rope, "factor", 1, 1, 1e6, within));
  if (type == "linear") return;
  r.original_max_positions = static_cast<i32>(integer_or(rope, "original_max_position_embeddings", m.max_positions, 1, 1 << 27, within));
  if (type == "llama3") {
    for (char const* key : {"low_freq_factor", "high_freq_factor"})
      if (!rope.find(key)) refuse("{}: {} is missing for rope_type llama3", within, key);
    r.low_freq_factor = static_cast<f32>(number_or(rope, "low_freq_factor", 1, 1e-6, 1e6, within));
    r.high_freq_factor = static_cast<f32>(number_or(rope, "high_freq_factor", 4, 1e-6, 1e6, within));
    if (!(r.high_freq_factor > r.low_freq_factor))
      refuse("{}: high_freq_factor {} must be above low_freq_factor {}", within, r.high_freq_factor, r.low_freq_factor);
  } else {
    r.beta_fast = static_cast<f32>(number_or(rope, "beta_fast", 32, 1e-6, 1e6, within));
    r.beta_slow = static_cast<f32>(number_or(rope, "beta_slow", 1, 1e-6, 1e6, within));
    r.attention_factor = static_cast<f32>(number_or(rope, "attention_factor", 0, 0, 1e6, within));
    r.mscale = static_cast<f32>(number_or(rope, "mscale", 0, 0, 1e6, within));
    r.mscale_all_dim = static_cast<f32>(number_or(rope, "mscale_all_dim", 0, 0, 1e6, within));
    r.truncate = bool_or(rope, "truncate", true, within);
  }
}

// What transformers takes where a key is absent, for the sizes of its first models.
struct family_defaults {
  i32 kv_heads, head_dim, max_positions;  // 0: as many as heads; hidden_size / heads
};
inline family_defaults defaults_of(std::string const& type) {
  if (type == "mistral") return {8, 0, 131072};
  if (type == "qwen2") return {32, 0, 32768};
  if (type == "qwen3") return {32, 128, 32768};
  return {0, 0, 2048};
}

// A window is in use for mistral when it is given (absent: 4096), for qwen2 and qwen3 from layer max_window_layers on when it is switched on.
inline void refuse_window(json const& root, std::string const& type, model::config const& m, std::string const& where) {
  json const* window = root.find("sliding_window");
  bool windowed = false;
  if (type == "mistral") windowed = window ? !window->is_null() : m.max_positions > 4096;
  else if (type != "llama" && !(window && window->is_null()))
    windowed = bool_or(root, "use_sliding_window", false, where) && integer_or(root, "max_window_layers", 28, 0, 1 << 30, where) < m.layers;
  if (windowed)
    refuse("{}: sliding_window is {} and in use; attention over a window is not supported", where,
           window ? show(window->dump(), 60) : "absent, which means 4096,");
}

inline void refuse_unsupported(json const& root, i32 layers, std::string const& where) {
  std::string const activation = string_or(root, "hidden_act", "silu", where);
  if (activation != "silu") refuse("{}: hidden_act is {}; only silu is supported", where, show(activation, 60));
  if (!bool_or(root, "is_causal", true, where)) refuse("{}: is_causal is false; only causal attention is supported", where);
  if (json const* kinds = root.find("layer_types"); kinds && !kinds->is_null()) {
    if (!kinds->as_array() || kinds->as_array()->size() != static_cast<std::size_t>(layers))
      refuse("{}: layer_types must name each of the {} layers", where, layers);
    for (json const& kind : *kinds->as_array())
      if (!kind.as_string() || *kind.as_string() != "full_attention")
        refuse("{}: layer_types holds {}; only full_attention is supported", where, show(kind.dump(), 60));
  }
  if (json const* quantized = root.find("quantization_config"); quantized && !quantized->is_null())
    refuse("{}: quantization_config is given; quantized weights are not supported", where);
  if (number_or(root, "attention_dropout", 0, 0, 1, where) != 0) refuse("{}: attention_dropout is not 0; dropout is not supported", where);
}
}  // namespace detail

// The largest head is that of the attention kernels (kernels::max_head_dim).
inline constexpr i32 most_layers = 4096, most_width = 1 << 20, most_heads = 4096, most_head_dim = 256, most_vocab = 1 << 24,
                     most_positions = 1 << 27;

inline hf_config parse_hf_config(json root, std::string const& where) {
  if (!root.as_object()) refuse("{}: it must be a JSON object", where);
  hf_config out;
  model::config& m = out.model;
  auto size = [&](char const* key, i32 most) { return static_cast<i32>(integer_of(root, key, 1, most, where)); };
  out.model_type = string_or(root, "model_type", "", where);
  std::string const& type = out.model_type;
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    refuse("{}: model_type is {}; supported are llama, mistral, qwen2 and qwen3", where, show(type, 60));
  m.layers = size("num_hidden_layers", most_layers);
  m.hidden = size("hidden_size", most_width);
  m.intermediate = size("intermediate_size", 4 * most_width);
  m.heads = size("num_attention_heads", most_heads);
  detail::family_defaults const absent = detail::defaults_of(type);
  i32 const kv_heads = absent.kv_heads && !root.find("num_key_value_heads") ? absent.kv_heads : m.heads;
  m.kv_heads = static_cast<i32>(integer_or(root, "num_key_value_heads", kv_heads, 1, most_heads, where));
  if (m.heads % m.kv_heads != 0)
    refuse("{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", where, m.heads, m.kv_heads);
  m.head_dim = static_cast<i32>(integer_or(root, "head_dim", absent.head_dim, 1, most_head_dim, where));
  if (m.head_dim == 0 && m.hidden % m.heads != 0)
    refuse("{}: head_dim is missing, and hidden_size {} is not a multiple of num_attention_heads {}", where, m.hidden, m.heads);
  if (m.head_dim == 0) m.head_dim = m.hidden / m.heads;
  if (m.head_dim % 2 != 0 || m.head_dim > most_head_dim)
    refuse("{}: head_dim is {}; it must be even and at most {}", where, m.head_dim, most_head_dim);
  m.vocab = size("vocab_size", most_vocab);
  m.max_positions = static_cast<i32>(integer_or(root, "max_position_embeddings", absent.max_positions, 1, most_positions, where));
  m.rms_norm_eps = static_cast<f32>(number_or(root, "rms_norm_eps", 1e-6, 1e-12, 1, where));
  m.tied = bool_or(root, "tie_word_embeddings", false, where);
  m.qk_norm = type == "qwen3";
  bool const biased =
      bool_or(root, "attention_bias", false, where);  // llama, qwen3: of q, k, v and o; qwen2 always has q, k, v and never o
  m.qkv_bias = type == "qwen2" || (type != "mistral" && biased);
  m.o_bias = type != "qwen2" && type != "mistral" && biased;
  m.mlp_bias = type == "llama" && bool_or(root, "mlp_bias", false, where);
  detail::refuse_unsupported(root, m.layers, where);
  detail::refuse_window(root, type, m, where);
  detail::read_rope(root, where, m);
  // A *ForSequenceClassification checkpoint (reward model, critic) has score.weight [labels, hidden] instead of an LM head.
  if (json const* names = root.find("architectures"); names && names->as_array() && !names->as_array()->empty()) {
    std::string const* name = names->as_array()->front().as_string();
    if (name && name->ends_with("ForSequenceClassification")) {
      json const* labels = root.find("id2label");
      i32 const named = labels && labels->as_object() ? static_cast<i32>(std::min<std::size_t>(labels->as_object()->size(), 65536)) : 2;
      m.labels = static_cast<i32>(integer_or(root, "num_labels", std::max(named, 1), 1, 65536, where));
    } else if (name && !name->ends_with("ForCausalLM")) {
      refuse("{}: architectures is {}; supported are *ForCausalLM and *ForSequenceClassification", where, show(*name, 60));
    }
  }
  out.dtype = string_or(root, "dtype", string_or(root, "torch_dtype", "", where), where);
  if (out.dtype.starts_with("torch.")) out.dtype.erase(0, 6);
  out.eos_ids = detail::ids_of(root, "eos_token_id", where);
  out.found = std::move(root);
  return out;
}

inline hf_config read_hf_config(path const& folder) {
  path const file = folder / "config.json";
  return parse_hf_config(parse_json(read_file(file, 16 << 20), file.string()), file.string());
}

// The ids that end a text by config.json and generation_config.json together (chat models list several), each once.
inline std::vector<i32> read_eos_ids(path const& folder, hf_config const& config) {
  std::vector<i32> ids = config.eos_ids;
  path const file = folder / "generation_config.json";
  if (std::filesystem::exists(file))
    for (i32 id : detail::ids_of(parse_json(read_file(file, 16 << 20), file.string()), "eos_token_id", file.string()))
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  for (i32 id : ids)
    if (id >= config.model.vocab) refuse("{}: eos_token_id {} is outside the vocabulary of {}", folder.string(), id, config.model.vocab);
  return ids;
}

inline std::string family_of(std::string const& model_type) {
  return model_type == "qwen3" ? "Qwen3" : model_type == "qwen2" ? "Qwen2" : model_type == "mistral" ? "Mistral" : "Llama";
}
inline void set_labels(json& out, hf_config const& config) {  // a score head in place of the LM head
  json::object names, ids;
  for (i32 i = 0; i < config.model.labels; ++i) {
    std::string const name = fmt::format("LABEL_{}", i);
    names.emplace_back(fmt::format("{}", i), name), ids.emplace_back(name, i);
  }
  out.set("architectures", json::array{family_of(config.model_type) + "ForSequenceClassification"});
  out.set("id2label", std::move(names));
  out.set("label2id", std::move(ids));
  if (out.find("num_labels")) out.set("num_labels", config.model.labels);
}

// config.json as it was found, with the type of the weights as they are now: `dtype` for transformers 5, `torch_dtype` for 4. A critic that
// began as a language model becomes a *ForSequenceClassification.
inline void write_hf_config(path const& folder, hf_config const& config, std::string_view dtype) {
  json out = config.found;
  out.set("dtype", dtype);
  out.set("torch_dtype", dtype);
  if (config.model.labels != parse_hf_config(config.found, (folder / "config.json").string()).model.labels) set_labels(out, config);
  write_file(folder / "config.json", out.dump(2) + "\n");
}

// The config.json of a new model: what parse_hf_config() reads back as the same model::config.
inline json hf_config_json(model::config const& m, std::string const& model_type, std::vector<i32> const& eos_ids) {
  std::string const family = family_of(model_type);
  auto digits = [](f32 x) { return std::stod(fmt::format("{}", x)); };  // 1e-06, not 9.999999974752427e-07
  json::object rope{{"rope_theta", digits(m.rope_theta)}, {"rope_type", "default"}};
  if (m.rope.type != model::rope_scaling::none) refuse("a new {} model has no scaled rope", model_type);
  json::array ids;
  for (i32 id : eos_ids) ids.emplace_back(id);
  json::object out{{"architectures", json::array{family + (m.labels > 0 ? "ForSequenceClassification" : "ForCausalLM")}},
                   {"attention_dropout", 0.0},
                   {"eos_token_id", ids.size() == 1 ? ids[0]
                                    : ids.empty()   ? json()
                                                    : json(ids)},
                   {"head_dim", m.head_dim},
                   {"hidden_act", "silu"},
                   {"hidden_size", m.hidden},
                   {"initializer_range", 0.02},
                   {"intermediate_size", m.intermediate},
                   {"max_position_embeddings", m.max_positions},
                   {"model_type", model_type},
                   {"num_attention_heads", m.heads},
                   {"num_hidden_layers", m.layers},
                   {"num_key_value_heads", m.kv_heads},
                   {"rms_norm_eps", digits(m.rms_norm_eps)},
                   {"rope_parameters", std::move(rope)},
                   {"rope_theta", digits(m.rope_theta)},
                   {"tie_word_embeddings", m.tied},
                   {"use_cache", true},
                   {"vocab_size", m.vocab}};
  if (model_type == "llama" || model_type == "qwen3") out.emplace_back("attention_bias", m.o_bias);
  if (model_type == "llama") out.emplace_back("mlp_bias", m.mlp_bias);
  if (model_type == "mistral") out.emplace_back("sliding_window", nullptr);
  if (m.labels > 0) {
    json::object names;
    for (i32 i = 0; i < m.labels; ++i) names.emplace_back(fmt::format("{}", i), fmt::format("LABEL_{}", i));
    out.emplace_back("id2label", std::move(names));
  }
  return json(std::move(out));
}
}  // namespace weft::io
