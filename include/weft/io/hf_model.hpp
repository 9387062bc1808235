// hf_model.hpp — the weights of a Hugging Face folder, in one file or several, to and from the flat arena of model/layout.hpp.
// Names and shapes are checked against the config when the files are opened, before anybody takes memory for them. A part of the arena
// can be read alone: a rank or a device reads the bytes of its part and no others.
#pragma once
#include <unordered_set>

#include <weft/io/hf_shards.hpp>
#include <weft/model/layout.hpp>

namespace weft::io {
inline std::string show_shape(std::vector<u64> const& shape) {
  std::string text = "[";
  for (u64 extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}
inline std::vector<u64> shape_of(model::tensor const& t) { return t.cols ? std::vector<u64>{t.rows, t.cols} : std::vector<u64>{t.rows}; }

// Weights that fit a config. A score head may be missing (a value model that starts from a language model), everything else
// must be there, and nothing else: a bias that the config does not know would silently change what the model computes.
class hf_weights {
 public:
  hf_weights(path const& folder, model::config const& c) : config_(c), files_(folder) {
    std::unordered_set<std::string> known;
    model::for_each_tensor(c, [&](model::tensor const& t) {
      std::string const name = model::full_name(t);
      tensor_info const* const found = files_.find(name);
      if (!found && is_score(t)) return;
      if (!found) refuse("{}: tensor {} is missing, which config.json implies", files_.where(), name);
      if (found->shape != shape_of(t))
        refuse("{}: tensor {} has shape {}; config.json implies {}", files_.where(), name, show_shape(found->shape),
               show_shape(shape_of(t)));
      known.insert(name);
    });
    files_.for_each([&](tensor_info const& t) {
      if (!known.count(t.name) && !is_ignored(t.name))
        refuse("{}: tensor {} does not belong to the model that config.json describes", files_.where(), show(t.name));
    });
  }

  bool has_score_head() const { return files_.find("score.weight") != nullptr; }

  // weights: the arena, model::parameter_count(config) elements, zero between tensors. A missing score head stays as it is there (see
  // model/initialise.hpp).
  template <class T> void read(T* weights) const { read(0, model::parameter_count(config_), weights); }

  // Elements first .. first + count of the arena, likewise.
  template <class T> void read(size_t first, size_t count, T* part /*[count]*/) const {
    model::for_each_tensor(config_, [&](model::tensor const& t) {
      size_t const begin = std::max(first, t.offset), end = std::min(first + count, t.offset + t.size());
      if (begin >= end || !files_.find(model::full_name(t))) return;
      files_.read(model::full_name(t), begin - t.offset, end - begin, part + (begin - first));
    });
  }

 private:
  model::config config_;
  hf_shards files_;

  static bool is_score(model::tensor const& t) { return std::string_view(t.name) == "score.weight"; }
  // Other heads of the same body, a tied head that was saved twice, and a table that old versions of transformers stored.
  static bool is_ignored(std::string_view name) {
    return name == "lm_head.weight" || name == "score.weight" || name.ends_with(".rotary_emb.inv_freq");
  }
};

inline constexpr u64 shard_bytes = u64{5} << 30;  // of one file that is written; transformers' max_shard_size is of this order

// Writes model.safetensors, or several files and their index; config.json is written by io/hf_config.hpp. A tied head is left out, as
// transformers does.
template <class T>
void write_hf_weights(path const& folder, model::config const& c, T const* weights, dtype type, u64 most_bytes = shard_bytes) {
  std::vector<tensor_source> tensors;
  model::for_each_tensor(c,
                         [&](model::tensor const& t) { tensors.push_back({model::full_name(t), type, shape_of(t), weights + t.offset}); });
  write_shards(folder, tensors, most_bytes);
}
}  // namespace weft::io
