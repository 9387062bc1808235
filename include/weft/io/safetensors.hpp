// safetensors.hpp — tensors in a file: an 8-byte header length, a JSON header, then the bytes of every tensor without holes.
// Every rule of the format is checked before memory is taken, and each reader touches only the bytes it asks for: values that keep their
// type are read to where they go, others are converted out of a map of the file.
// Elements convert on the way: F64/F32/F16/BF16 to float or double, I64/I32 to 32- or 64-bit integers (what does not fit is refused).
#pragma once
#include <memory>
#include <type_traits>
#include <variant>

#include <weft/io/file.hpp>
#include <weft/io/safetensors_header.hpp>

namespace weft::io {
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
      constexpr std::size_t chunk = 1 << 20;
      file_map const map(fd_, file_, offset, static_cast<std::size_t>(count) * sizeof(Stored));
      for (u64 done = 0; done < count; done += chunk) {
        std::size_t const n = static_cast<std::size_t>(std::min<u64>(chunk, count - done));
        map.check();
        char const* const from = map.data() + done * sizeof(Stored);
        for (std::size_t i = 0; i < n; ++i) {
          Stored stored;
          std::memcpy(&stored, from + i * sizeof stored, sizeof stored);  // tensors need not be aligned
          if constexpr (std::is_class_v<Stored>) out[done + i] = static_cast<T>(to_float(stored));
          else out[done + i] = static_cast<T>(stored);
          if constexpr (std::is_integral_v<T>)
            if (static_cast<Stored>(out[done + i]) != stored)
              refuse("{}: tensor {} holds {}, which does not fit", file_.string(), show(tensor.name), stored);
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
