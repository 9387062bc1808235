// model_files.hpp — a model's folder: read before memory is taken, loaded into the arena that a bound graph planned for it, saved for others to load.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <weft/io/hf_config.hpp>
#include <weft/io/hf_model.hpp>
#include <weft/io/tokenizer.hpp>
#include <weft/model/initialise.hpp>

namespace weft::train {
inline io::dtype dtype_named(std::string const& name, io::path const& folder) {
  if (name == "bfloat16") return io::dtype::BF16;
  if (name == "float16") return io::dtype::F16;
  if (name == "float32" || name.empty()) return io::dtype::F32;
  io::refuse("{}: dtype is {}; supported are float32, bfloat16 and float16", (folder / "config.json").string(), io::show(name));
}

// What a run knows of one of its models. `labels` turns a language model into a score model (a critic starts from an actor).
class model_files {
 public:
  model_files(io::path folder, i32 labels, bool may_be_new) : folder_(std::move(folder)) {
    if (folder_.empty()) io::refuse("no model: give its Hugging Face folder with --model");
    if (!std::filesystem::is_directory(folder_))
      io::refuse("{}: there is no such folder; --model wants a Hugging Face folder", folder_.string());
    config_ = io::read_hf_config(folder_);
    dtype_ = dtype_named(config_.dtype, folder_);
    if (labels) config_.model.labels = labels;
    bool const has_weights =
        std::filesystem::exists(folder_ / "model.safetensors") || std::filesystem::exists(folder_ / "model.safetensors.index.json");
    if (has_weights) weights_ = std::make_unique<io::hf_weights>(folder_, config_.model);
    else if (!may_be_new) io::refuse("{}: model.safetensors is missing", folder_.string());
  }
  model::config const& config() const { return config_.model; }
  io::hf_config const& found() const { return config_; }
  io::path const& folder() const { return folder_; }
  io::dtype dtype() const { return dtype_; }  // of the weights in the files, and of those that are saved
  bool is_new() const { return !weights_; }

  // weights: [parameter_count(config)]. A new model is drawn from the seed; a score head that the files lack starts at zero.
  void load(std::uint64_t seed, f32* weights) {
    if (is_new()) return model::initialise(config(), seed, weights);
    std::fill_n(weights, model::parameter_count(config()), 0.0f);
    weights_->read(weights);
    weights_.reset();
  }

 private:
  io::path folder_;
  io::hf_config config_;
  io::dtype dtype_ = io::dtype::F32;
  std::unique_ptr<io::hf_weights> weights_;
};

// A folder that transformers and weft load: config, weights in the element type of the source, and the files of tokenizer and generation as
// they were. It is written beside, then takes its name: what stood there is whole until then. Other files in it stay.
inline void save_model(io::path const& to, model_files const& from, f32 const* weights, io::u64 most_bytes = io::shard_bytes) {
  io::path const folder = to.has_filename() ? to : to.parent_path(), fresh = folder.string() + fmt::format(".tmp{}", ::getpid());
  io::path const old = folder.string() + fmt::format(".old{}", ::getpid());
  if (folder.has_parent_path()) io::make_folder(folder.parent_path());
  std::filesystem::remove_all(fresh);
  io::make_folder(fresh);
  std::string const type = from.found().dtype.empty() ? "float32" : from.found().dtype;
  io::write_hf_config(fresh, from.found(), type);
  for (char const* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model"})
    if (std::filesystem::exists(from.folder() / name)) io::write_file(fresh / name, io::read_file(from.folder() / name, 64 << 20));
  io::write_hf_weights(fresh, from.config(), weights, from.dtype(), most_bytes);
  bool const replaces = std::filesystem::exists(folder);
  if (replaces) io::rename_durably(folder, old);
  io::rename_durably(fresh, folder);
  if (!replaces) return;
  for (auto const& entry : std::filesystem::directory_iterator(old)) {
    std::string const name = entry.path().filename().string();
    bool const weights_file = name.starts_with("model") && (name.ends_with(".safetensors") || name.ends_with(".index.json"));
    if (!weights_file && !std::filesystem::exists(folder / name)) io::rename_durably(entry.path(), folder / name);
  }
  std::filesystem::remove_all(old);
}
}  // namespace weft::train
