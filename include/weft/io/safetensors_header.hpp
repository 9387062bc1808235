// safetensors_header.hpp — the JSON header of a safetensors file. Every rule is checked, an error names file, tensor and rule: ranges
// contiguous from 0, no hole, no overlap, each as long as dtype and shape say (checked products), the last end the file's.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <weft/io/dtype.hpp>
#include <weft/io/json.hpp>

namespace weft::io {
struct tensor_info {
  std::string name;
  dtype type = dtype::F32;
  std::vector<u64> shape;  // outermost first; empty: one element
  u64 begin = 0, end = 0;  // bytes, from the end of the header

  u64 count() const {
    u64 elements = 1;
    for (u64 extent : shape) elements *= extent;
    return elements;
  }
};

struct safetensors_header {
  std::vector<tensor_info> tensors;  // by name
  std::map<std::string, std::string> metadata;
  u64 data_at = 0;  // where in the file the first tensor begins
};

inline constexpr u64 most_header_bytes = 100'000'000, most_tensors = 1'000'000, most_rank = 8, most_name_bytes = 1024;

namespace detail {
inline tensor_info tensor_from(json::member const& entry, std::string const& where) {
  tensor_info tensor;
  tensor.name = entry.first;
  std::string const who = where + ": tensor " + show(entry.first);
  if (tensor.name.size() > most_name_bytes) refuse("{}: the name has {} bytes; the limit is {}", who, tensor.name.size(), most_name_bytes);
  json const &type = entry.second.at("dtype", who), &shape = entry.second.at("shape", who), &range = entry.second.at("data_offsets", who);
  auto const known =
      std::find_if(dtypes.begin(), dtypes.end(), [&](dtype_facts const& d) { return type.as_string() && *type.as_string() == d.name; });
  if (known == dtypes.end()) refuse("{}: dtype {} is unknown", who, show(type.dump(), 60));
  tensor.type = static_cast<dtype>(known - dtypes.begin());
  if (!shape.as_array() || shape.as_array()->size() > most_rank) refuse("{}: shape must be a list of at most {} sizes", who, most_rank);
  u64 bits = known->bits;
  for (json const& extent : *shape.as_array()) {
    if (!extent.in_range(0, INT64_MAX)) refuse("{}: shape holds {}, not a size", who, show(extent.dump(), 60));
    tensor.shape.push_back(extent.to_unsigned());
    if (__builtin_mul_overflow(bits, tensor.shape.back(), &bits)) refuse("{}: the product of its shape overflows", who);
  }
  if (bits % 8 != 0) refuse("{}: {} bits are not a whole number of bytes", who, bits);
  auto const* ends = range.as_array();
  if (!ends || ends->size() != 2 || !(*ends)[0].in_range(0, INT64_MAX) || !(*ends)[1].in_range(0, INT64_MAX))
    refuse("{}: data_offsets must be two offsets [begin, end]", who);
  tensor.begin = (*ends)[0].to_unsigned(), tensor.end = (*ends)[1].to_unsigned();
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bits / 8)
    refuse("{}: data_offsets [{}, {}] do not hold the {} bytes that dtype and shape need", who, tensor.begin, tensor.end, bits / 8);
  return tensor;
}
}  // namespace detail

// `text` is the JSON header alone; the file has `data_bytes` bytes after it.
inline safetensors_header parse_safetensors_header(std::string_view text, u64 data_bytes, std::string const& where) {
  if (text.empty() || text[0] != '{') refuse("{}: the safetensors header does not begin with '{{'", where);
  json const root = parse_json(text, where, 1, {.depth = 4, .bytes = most_header_bytes, .values = 16 * most_tensors});
  safetensors_header header;
  if (root.as_object()->size() > most_tensors) refuse("{}: more than {} tensors", where, most_tensors);
  for (auto& member : *root.as_object()) {
    if (member.first != "__metadata__") {
      header.tensors.push_back(detail::tensor_from(member, where));
      continue;
    }
    if (!member.second.as_object()) refuse("{}: __metadata__ must be an object of strings", where);
    for (auto& [key, value] : *member.second.as_object()) {
      if (!value.as_string()) refuse("{}: __metadata__ {} is not a string", where, show(key));
      header.metadata[key] = *value.as_string();
    }
  }
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  u64 at = 0;
  for (auto& tensor : tensors) {
    if (tensor.begin != at)
      refuse("{}: tensor {} begins at {}, but the one before ends at {}: {}", where, show(tensor.name), tensor.begin, at,
             tensor.begin < at ? "they overlap" : "there is a hole");
    at = tensor.end;
  }
  if (at != data_bytes)
    refuse("{}: the tensors end at byte {}, but the file has {} bytes of data; it is {}", where, at, data_bytes,
           at > data_bytes ? "cut short" : "too long");
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return header;
}
}  // namespace weft::io
