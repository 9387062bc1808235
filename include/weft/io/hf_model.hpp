// hf_model.hpp — the weights of a Hugging Face folder, model.safetensors, to and from the flat arena of model/layout.hpp.
// Names and shapes are checked against the config when the file is opened, before anybody takes memory for them.
#pragma once
#include <unordered_set>

#include <weft/io/safetensors.hpp>
#include <weft/model/layout.hpp>

namespace weft::io {
inline std::string show_shape(std::vector<u64> const& shape) {
  std::string text = "[";
  for (u64 extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}
inline std::vector<u64> shape_of(model::tensor const& t) { return t.cols ? std::vector<u64>{t.rows, t.cols} : std::vector<u64>{t.rows}; }

// A model.safetensors that fits a config. A score head may be missing (a value model that starts from a language model), everything else
// must be there, and nothing else: a bias that the config does not know would silently change what the model computes.
class hf_weights {
 public:
  hf_weights(path const& folder, model::config const& c) : config_(c), file_(single_file(folder)) {
    std::unordered_set<std::string> known;
    model::for_each_tensor(c, [&](model::tensor const& t) {
      std::string const name = model::full_name(t);
      tensor_info const* const found = file_.find(name);
      if (!found && is_score(t)) return;
      if (!found) refuse("{}: tensor {} is missing, which config.json implies", file_.file().string(), name);
      if (found->shape != shape_of(t))
        refuse("{}: tensor {} has shape {}; config.json implies {}", file_.file().string(), name, show_shape(found->shape),
               show_shape(shape_of(t)));
      known.insert(name);
    });
    for (tensor_info const& t : file_.tensors())
      if (!known.count(t.name) && !is_ignored(t.name))
        refuse("{}: tensor {} does not belong to the model that config.json describes", file_.file().string(), show(t.name));
  }

  bool has_score_head() const { return file_.find("score.weight") != nullptr; }

  // weights: the arena, model::parameter_count(config) elements, zero between tensors. A missing score head stays as it is there (see
  // model/initialise.hpp).
  template <class T> void read(T* weights) const {
    model::for_each_tensor(config_, [&](model::tensor const& t) {
      if (tensor_info const* const found = file_.find(model::full_name(t))) file_.read(*found, weights + t.offset);
    });
  }

 private:
  model::config config_;
  safetensors_file file_;

  static path single_file(path const& folder) {
    path const file = folder / "model.safetensors";
    if (!std::filesystem::exists(file) && std::filesystem::exists(folder / "model.safetensors.index.json"))
      refuse("{}: the weights are spread over several files; join them into one model.safetensors", folder.string());
    return file;
  }
  static bool is_score(model::tensor const& t) { return std::string_view(t.name) == "score.weight"; }
  // Other heads of the same body, a tied head that was saved twice, and a table that old versions of transformers stored.
  static bool is_ignored(std::string_view name) {
    return name == "lm_head.weight" || name == "score.weight" || name.ends_with(".rotary_emb.inv_freq");
  }
};

// Writes model.safetensors; config.json is written by io/hf_config.hpp. A tied head is left out, as transformers does.
template <class T> void write_hf_weights(path const& folder, model::config const& c, T const* weights, dtype type) {
  std::vector<tensor_source> tensors;
  model::for_each_tensor(c, [&](model::tensor const& t) {
    tensors.push_back({model::full_name(t), type, shape_of(t), weights + t.offset});
  });
  write_safetensors(folder / "model.safetensors", std::move(tensors));
}
}  // namespace weft::io
