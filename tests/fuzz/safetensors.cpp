// safetensors.cpp — bytes as a file: refused, or every tensor can be read within the file's size.
#include <weft/io/safetensors.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::file const file({reinterpret_cast<char const*>(data), size});
  return fuzz::refused_or_good([&] {
    weft::io::safetensors_file const in(file.path());
    for (auto const& tensor : in.tensors()) {
      fuzz::demand(in.find(tensor.name) == &tensor);
      fuzz::demand(tensor.count() * weft::io::bits_of(tensor.type) / 8 <= size);
      fuzz::refused_or_good([&] { in.read<float>(tensor.name); });
      fuzz::refused_or_good([&] { in.read<std::int32_t>(tensor.name); });
    }
  });
}
