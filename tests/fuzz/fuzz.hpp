// fuzz.hpp — what the fuzzers share: bytes as a file, and a main that runs given files where there is no libFuzzer (-DWEFT_REPLAY).
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <weft/io/file.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace fuzz {
class file {  // in memory, with a path
 public:
  explicit file(std::string_view bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", fd_.get())) {
    weft::io::write_all(fd_, path_, bytes.data(), bytes.size());
  }
  weft::io::path const& path() const { return path_; }

 private:
  weft::io::descriptor fd_;
  weft::io::path path_;
};

inline void demand(bool holds) {
  if (!holds) std::abort();
}

template <class F> int refused_or_good(F const& f) {  // the only two ways out of a reader
  try {
    f();
  } catch (weft::io::input_error const& refusal) { demand(std::string_view(refusal.what()).find('\n') == std::string_view::npos); }
  return 0;
}
}  // namespace fuzz

#ifdef WEFT_REPLAY
int main(int count, char** files) {
  for (int i = 1; i < count; ++i) {
    std::string const bytes = weft::io::read_file(files[i], std::uint64_t{1} << 30);
    LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(bytes.data()), bytes.size());
  }
}
#endif
