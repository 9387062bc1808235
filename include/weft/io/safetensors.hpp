// safetensors.hpp — tensors in a file: an 8-byte header length, a JSON header, then the bytes of every tensor without holes.
// Every rule of the format is checked before memory is taken. Values are read at an offset with pread, not through a map, so that a
// file which shrinks meanwhile is an error and not a crash, and each reader touches only the bytes it asks for.
// Elements convert on the way: F64/F32/F16/BF16 to float or double, I64/I32 to 32- or 64-bit integers (a value that does not fit is refused).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

#include <weft/element.hpp>
#include <weft/io/file.hpp>
#include <weft/io/json.hpp>

namespace weft::io {
static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and so are all files of weft");
using u64 = std::uint64_t;

// In the order of the reference implementation: rising alignment, which the writer sorts by.
enum class dtype {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};
struct dtype_facts {
  char const* name;
  u64 bits;
};
inline constexpr std::array<dtype_facts, 22> dtypes{
    {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
     {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64}, {"U64", 64}}};
constexpr char const* name_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].name; }
constexpr u64 bits_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].bits; }

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

inline float to_float(bf16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
inline bf16 to_bf16(float x) {  // to nearest, ties to even; NaN stays NaN
  auto const bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
struct f16 {
  std::uint16_t bits;
};  // IEEE binary16
inline float to_float(f16 x) {
  std::uint32_t const sign = std::uint32_t{x.bits} >> 15 << 31, rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  float const magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;  // moves the exponent's bias; denormals come out exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}
inline f16 to_f16(float x) {  // to nearest, ties to even; what is too large becomes infinity
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto const sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  std::uint32_t const rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (rest >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (rest < 0x38800000u) {  // a denormal of binary16, a multiple of 2^-24: the addition rounds
    float const rounded = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u))};
  }
  return {static_cast<std::uint16_t>(sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13)};
}

class safetensors_file {
 public:
  explicit safetensors_file(path file) : file_(std::move(file)), fd_(open_read(file_)), bytes_(size_of(fd_, file_)) {
    u64 length = 0;
    if (bytes_ < 8) refuse("{}: {} bytes are too few for a safetensors file", file_.string(), bytes_);
    read_at(fd_, file_, 0, &length, 8);
    if (length > most_header_bytes) refuse("{}: the header claims {} bytes; the limit is {}", file_.string(), length, most_header_bytes);
    if (length > bytes_ - 8)
      refuse("{}: the header claims {} bytes, but the file has {} after the length; it is cut short", file_.string(), length, bytes_ - 8);
    std::string text(static_cast<std::size_t>(length), '\0');
    read_at(fd_, file_, 8, text.data(), text.size());
    header_ = parse_safetensors_header(text, bytes_ - 8 - length, file_.string());
    header_.data_at = 8 + length;
  }
  path const& file() const { return file_; }
  std::vector<tensor_info> const& tensors() const { return header_.tensors; }
  std::map<std::string, std::string> const& metadata() const { return header_.metadata; }
  tensor_info const* find(std::string_view name) const {
    auto const at =
        std::lower_bound(tensors().begin(), tensors().end(), name, [](tensor_info const& t, std::string_view n) { return t.name < n; });
    return at != tensors().end() && at->name == name ? &*at : nullptr;
  }
  tensor_info const& at(std::string_view name) const {
    tensor_info const* tensor = find(name);
    if (!tensor) refuse("{}: tensor {} is missing", file_.string(), show(name));
    return *tensor;
  }
  // `count` elements of a tensor of this file, in row-major order, from element `first` on.
  template <class T> void read(tensor_info const& tensor, u64 first, u64 count, T* out /*[count]*/) const {
    if (first > tensor.count() || count > tensor.count() - first)
      refuse("{}: tensor {} has {} elements; asked for {} from {} on", file_.string(), show(tensor.name), tensor.count(), count, first);
    switch (tensor.type) {
      case dtype::F64:
        return convert<double>(tensor, first, count, out);
      case dtype::F32:
        return convert<float>(tensor, first, count, out);
      case dtype::F16:
        return convert<f16>(tensor, first, count, out);
      case dtype::BF16:
        return convert<bf16>(tensor, first, count, out);
      case dtype::I64:
        return convert<std::int64_t>(tensor, first, count, out);
      case dtype::I32:
        return convert<std::int32_t>(tensor, first, count, out);
      default:
        refuse("{}: tensor {} is {}; only F64, F32, F16, BF16, I64 and I32 can be read", file_.string(), show(tensor.name),
               name_of(tensor.type));
    }
  }
  template <class T> void read(tensor_info const& tensor, T* out /*[tensor.count()]*/) const { read(tensor, 0, tensor.count(), out); }
  template <class T> std::vector<T> read(std::string_view name) const {
    tensor_info const& tensor = at(name);
    std::vector<T> out(static_cast<std::size_t>(tensor.count()));
    read(tensor, out.data());
    return out;
  }

 private:
  path file_;
  descriptor fd_;
  u64 bytes_;
  safetensors_header header_;

  template <class Stored, class T> void convert(tensor_info const& tensor, u64 first, u64 count, T* out) const {
    u64 const offset = header_.data_at + tensor.begin + first * sizeof(Stored);
    if constexpr (std::is_same_v<Stored, T>) {
      read_at(fd_, file_, offset, out, static_cast<std::size_t>(count) * sizeof(T));
    } else if constexpr (std::is_integral_v<Stored> != std::is_integral_v<T>) {
      refuse("{}: tensor {} is {}: {} were expected", file_.string(), show(tensor.name), name_of(tensor.type),
             std::is_integral_v<T> ? "integers" : "real numbers");
    } else {
      constexpr std::size_t chunk = 1 << 15;
      std::unique_ptr<Stored[]> stored(new Stored[chunk]);
      for (u64 done = 0; done < count; done += chunk) {
        std::size_t const n = static_cast<std::size_t>(std::min<u64>(chunk, count - done));
        read_at(fd_, file_, offset + done * sizeof(Stored), stored.get(), n * sizeof(Stored));
        for (std::size_t i = 0; i < n; ++i) {
          if constexpr (std::is_class_v<Stored>) out[done + i] = static_cast<T>(to_float(stored[i]));
          else out[done + i] = static_cast<T>(stored[i]);
          if constexpr (std::is_integral_v<T>)
            if (static_cast<Stored>(out[done + i]) != stored[i])
              refuse("{}: tensor {} holds {}, which does not fit", file_.string(), show(tensor.name), stored[i]);
        }
      }
    }
  }
};

// What the writer is given: values where they are, and the type that they take in the file.
struct tensor_source {
  std::string name;
  dtype type = dtype::F32;  // F32, F16, BF16 from float or double; I32, I64 from integers of that width
  std::vector<u64> shape;
  std::variant<float const*, double const*, std::int32_t const*, std::int64_t const*> values;  // [product of shape]
};

namespace detail {
template <class Stored, class T> void write_as(atomic_file& out, T const* values, u64 count) {
  if constexpr (std::is_same_v<Stored, T>) return out.write(values, static_cast<std::size_t>(count) * sizeof(T));
  constexpr std::size_t chunk = 1 << 15;
  std::unique_ptr<Stored[]> stored(new Stored[chunk]);
  for (u64 done = 0; done < count; done += chunk) {
    std::size_t const n = static_cast<std::size_t>(std::min<u64>(chunk, count - done));
    for (std::size_t i = 0; i < n; ++i) {
      auto const value = static_cast<float>(values[done + i]);
      if constexpr (std::is_same_v<Stored, bf16>) stored[i] = to_bf16(value);
      else if constexpr (std::is_same_v<Stored, f16>) stored[i] = to_f16(value);
      else stored[i] = static_cast<Stored>(value);
    }
    out.write(stored.get(), n * sizeof(Stored));
  }
}
inline void write_tensor(atomic_file& out, tensor_source const& tensor, u64 count) {
  std::visit(
      [&](auto const* values) {
        using T = std::remove_cvref_t<decltype(*values)>;
        if constexpr (std::is_integral_v<T>) {
          if (bits_of(tensor.type) == 8 * sizeof(T) && (tensor.type == dtype::I32 || tensor.type == dtype::I64))
            return write_as<T>(out, values, count);
        } else {
          if (tensor.type == dtype::F32) return write_as<float>(out, values, count);
          if (tensor.type == dtype::BF16) return write_as<bf16>(out, values, count);
          if (tensor.type == dtype::F16) return write_as<f16>(out, values, count);
        }
        refuse("tensor {} cannot be written as {}", show(tensor.name), name_of(tensor.type));
      },
      tensor.values);
}
}  // namespace detail

// Ordered as the reference writer does: falling alignment, then name; the header is padded with blanks to a multiple of 8.
inline void write_safetensors(path const& file, std::vector<tensor_source> tensors,
                              std::map<std::string, std::string> const& metadata = {{"format", "pt"}}) {
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return a.type != b.type ? a.type > b.type : a.name < b.name; });
  json::object header;
  if (!metadata.empty()) {
    json::object strings;
    for (auto& [key, value] : metadata) strings.emplace_back(key, value);
    header.emplace_back("__metadata__", std::move(strings));
  }
  u64 at = 0;
  std::vector<u64> counts;
  for (auto& tensor : tensors) {
    json::array shape;
    u64 count = 1;
    for (u64 extent : tensor.shape) shape.emplace_back(extent), count *= extent;
    counts.push_back(count);
    u64 const end = at + count * bits_of(tensor.type) / 8;
    header.emplace_back(tensor.name,
                        json::object{{"dtype", name_of(tensor.type)}, {"shape", std::move(shape)}, {"data_offsets", json::array{at, end}}});
    at = end;
  }
  std::string text = json(std::move(header)).dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  atomic_file out(file);
  u64 const length = text.size();
  out.write(&length, 8);
  out.write(text);
  for (std::size_t i = 0; i < tensors.size(); ++i) detail::write_tensor(out, tensors[i], counts[i]);
  out.commit();
}
}  // namespace weft::io
