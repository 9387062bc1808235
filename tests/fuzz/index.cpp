// index.cpp — an index of shards is refused, or each tensor has a file whose name stays in the folder.
#include <weft/io/hf_shards.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  return fuzz::refused_or_good([&] {
    auto const index = weft::io::parse_shard_index(weft::io::parse_json(text, "fuzz"), "fuzz");
    fuzz::demand(!index.files.empty() && index.files.size() <= index.weight_map.size());
    for (auto const& [tensor, file] : index.weight_map) fuzz::demand(file < index.files.size());
    for (auto const& name : index.files)
      fuzz::demand(name.ends_with(".safetensors") && name[0] != '.' && weft::io::path(name).filename() == name);
  });
}
