// journal.cpp — bytes as a journal, as they are and with right checksums: reading ends within the file, and appending after a repair
// keeps what was whole.
#include <weft/io/journal.hpp>

#include "fuzz.hpp"

namespace {
void check(std::string_view bytes) {
  fuzz::file const file(bytes);
  fuzz::refused_or_good([&] {
    auto const end = weft::io::read_journal(file.path(), [](weft::io::bytes_view payload) {
      weft::io::sample_view<float> sample;
      if (!weft::io::read_sample(payload, sample)) return;
      static volatile float touched;
      for (weft::i32 i = 0; i < sample.head.count; ++i)
        touched = sample.log_probs[i] + sample.log_kept[i] + sample.entropies[i] + static_cast<float>(sample.ids[i]);
    });
    fuzz::demand(end.bytes + end.torn == bytes.size());
    weft::io::journal to(file.path());
    to.append({std::as_bytes(std::span("end", 3))});
    fuzz::demand(weft::io::read_journal(file.path(), [](weft::io::bytes_view) {}).records == end.records + 1);
  });
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string bytes(reinterpret_cast<char const*>(data), size);
  check(bytes);
  for (std::size_t at = 8; at + 8 <= bytes.size();) {  // sign every record that fits
    std::uint32_t length;
    std::memcpy(&length, &bytes[at], 4);
    if (length > bytes.size() - at - 8) break;
    std::uint32_t const crc = weft::io::crc32c(&bytes[at + 8], length, weft::io::crc32c(&bytes[at], 4));
    std::memcpy(&bytes[at + 4], &crc, 4);
    at += 8 + length;
  }
  if (size >= 8) std::memcpy(bytes.data(), "weftjrn1", 8);
  check(bytes);
  return 0;
}
