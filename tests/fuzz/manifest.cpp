// manifest.cpp — a checkpoint's manifest, as it is and with a right checksum: refused, or the same after writing and reading.
#include <weft/io/checkpoint.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const text(reinterpret_cast<char const*>(data), size);
  for (std::string const& form : {text, text + fmt::format("{:08x}\n", weft::io::crc32c(text.data(), text.size()))})
    fuzz::refused_or_good([&] {
      auto const m = weft::io::parse_manifest(form, "fuzz");
      for (auto const& blob : m.blobs) fuzz::demand(blob.name.find('/') == std::string::npos && blob.name[0] != '.');
      std::string const again = weft::io::manifest_text(m);
      fuzz::demand(weft::io::manifest_text(weft::io::parse_manifest(again, "again")) == again);
    });
  return 0;
}
