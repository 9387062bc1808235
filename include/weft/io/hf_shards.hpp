// hf_shards.hpp — the tensors of a Hugging Face folder as one set: model.safetensors, or the files that model.safetensors.index.json names.
// An index is not trusted: file names stay within the folder, every tensor is in the file that the index says and in no other, and
// total_size is the sum of all tensors. model.safetensors wins where both are there, as in transformers.
#pragma once
#include <deque>
#include <optional>
#include <unordered_map>

#include <weft/io/safetensors.hpp>

namespace weft::io {
inline constexpr std::size_t most_shards = 1000;  // each is an open file

struct shard_index {
  std::vector<std::string> files;                           // each once, sorted
  std::unordered_map<std::string, std::size_t> weight_map;  // tensor -> place in files
  std::optional<u64> total_size;                            // bytes of all tensors
};

inline shard_index parse_shard_index(json const& root, std::string const& where) {
  if (!root.as_object()) refuse("{}: it must be a JSON object", where);
  json const& map = root.at("weight_map", where);
  if (!map.as_object() || map.as_object()->empty()) refuse("{}: weight_map must be an object that names a file for each tensor", where);
  if (map.as_object()->size() > most_tensors) refuse("{}: more than {} tensors", where, most_tensors);
  shard_index index;
  for (auto& [tensor, file] : *map.as_object()) {
    std::string const* const name = file.as_string();
    if (!name) refuse("{}: weight_map of {} is {}; it must be a file name", where, show(tensor), show(file.dump(), 60));
    bool const plain = std::all_of(name->begin(), name->end(), [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != '\\'; });
    if (!plain || name->size() > 255 || name->front() == '.' || !name->ends_with(".safetensors"))
      refuse("{}: weight_map of {} is {}; it must be the name of a .safetensors file in the same folder", where, show(tensor), show(*name));
    index.files.push_back(*name);
  }
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  if (index.files.size() > most_shards) refuse("{}: {} files; the limit is {}", where, index.files.size(), most_shards);
  for (auto& [tensor, file] : *map.as_object())
    index.weight_map[tensor] =
        std::size_t(std::lower_bound(index.files.begin(), index.files.end(), *file.as_string()) - index.files.begin());
  json const* const about = root.find("metadata");
  if (about && !about->is_null() && !about->as_object()) refuse("{}: metadata must be an object", where);
  if (about && about->find("total_size"))
    index.total_size = static_cast<u64>(integer_of(*about, "total_size", 0, INT64_MAX, where + ": metadata"));
  return index;
}

class hf_shards {
 public:
  explicit hf_shards(path const& folder) {
    path const single = folder / "model.safetensors", listed = folder / "model.safetensors.index.json";
    if (std::filesystem::exists(single) || !std::filesystem::exists(listed)) {
      where_ = single;
      files_.emplace_back(single);
      for (tensor_info const& t : files_[0].tensors()) places_[t.name] = {&files_[0], &t};
      return;
    }
    where_ = listed;
    shard_index const index = parse_shard_index(parse_json(read_file(listed, most_header_bytes), listed.string()), listed.string());
    u64 bytes = 0;
    for (std::string const& name : index.files) {
      safetensors_file const& file = files_.emplace_back(folder / name);
      for (tensor_info const& t : file.tensors()) {
        auto const planned = index.weight_map.find(t.name);
        if (planned == index.weight_map.end()) refuse("{}: tensor {} of {} is not in weight_map", where(), show(t.name), name);
        if (index.files[planned->second] != name)
          refuse("{}: tensor {} is in {} as well, weight_map says {}", where(), show(t.name), name, index.files[planned->second]);
        places_[t.name] = {&file, &t};
        bytes += t.end - t.begin;
      }
    }
    for (auto& [tensor, file] : index.weight_map)
      if (!places_.count(tensor)) refuse("{}: tensor {} is missing in {}", where(), show(tensor), index.files[file]);
    if (index.total_size && *index.total_size != bytes)
      refuse("{}: metadata.total_size is {}, but the tensors have {} bytes", where(), *index.total_size, bytes);
  }
  std::string where() const { return where_.string(); }  // for messages
  std::size_t files() const { return files_.size(); }
  tensor_info const* find(std::string const& name) const {
    auto const at = places_.find(name);
    return at == places_.end() ? nullptr : at->second.tensor;
  }
  template <class F> void for_each(F const& f) const {  // f(tensor_info), file by file
    for (safetensors_file const& file : files_)
      for (tensor_info const& t : file.tensors()) f(t);
  }
  // `count` elements of a tensor from element `first` on; nothing else is read.
  template <class T> void read(std::string const& name, u64 first, u64 count, T* out /*[count]*/) const {
    place const& at = places_.at(name);
    at.file->read(*at.tensor, first, count, out);
  }

 private:
  struct place {
    safetensors_file const* file;
    tensor_info const* tensor;
  };
  path where_;
  std::deque<safetensors_file> files_;  // stay where they are
  std::unordered_map<std::string, place> places_;
};

// Tensors in files of at most `most_bytes` each (a larger tensor has one to itself): model.safetensors if one is enough, otherwise
// model-0000i-of-0000k.safetensors and, when all of them are there, the index.
inline void write_shards(path const& folder, std::vector<tensor_source> const& tensors, u64 most_bytes) {
  std::vector<std::vector<tensor_source>> shards(1);
  u64 total = 0, in_shard = 0;
  for (tensor_source const& t : tensors) {
    u64 bytes = bits_of(t.type) / 8;
    for (u64 extent : t.shape) bytes *= extent;
    if (in_shard > 0 && in_shard + bytes > most_bytes) shards.emplace_back(), in_shard = 0;
    shards.back().push_back(t);
    in_shard += bytes, total += bytes;
  }
  if (shards.size() == 1) return write_safetensors(folder / "model.safetensors", tensors);
  if (shards.size() > most_shards)
    refuse("{}: {} files of at most {} bytes; the limit is {} files", folder.string(), shards.size(), most_bytes, most_shards);
  json::object map;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::string const name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (tensor_source const& t : shards[i]) map.emplace_back(t.name, name);
    write_safetensors(folder / name, std::move(shards[i]));
  }
  std::sort(map.begin(), map.end(), [](auto& a, auto& b) { return a.first < b.first; });
  json const index = json::object{{"metadata", json::object{{"total_size", total}}}, {"weight_map", std::move(map)}};
  write_file(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}
}  // namespace weft::io
