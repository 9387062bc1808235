// load.cpp — how fast safetensors are read from the page cache, next to a plain read of the same bytes. One thread; best of several runs,
// the two by turns.
//   build/bench/load [MEGABYTES]     of the file that is written to the temporary folder; 500
#include <weft/io/safetensors.hpp>

#include <chrono>
#include <cstdlib>

namespace {
using namespace weft::io;

template <class F> double seconds(F const& f) {
  auto const from = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

void compare(path const& file, dtype type, std::size_t bytes) {
  std::size_t const count = bytes / (bits_of(type) / 8), tensors = 200, each = count / tensors;
  std::vector<float> values(each * tensors, 0.25f);
  std::vector<tensor_source> sources;
  for (std::size_t i = 0; i < tensors; ++i) sources.push_back({fmt::format("t{:03}", i), type, {each}, values.data() + i * each});
  write_safetensors(file, std::move(sources));
  std::uint64_t const size = std::filesystem::file_size(file);
  std::string plain(size, '\0');
  double read = 1e9, load = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    read = std::min(read, seconds([&] { read_at(open_read(file), file, 0, plain.data(), plain.size()); }));
    load = std::min(load, seconds([&] {
                      safetensors_file const in(file);
                      float* to = values.data();
                      for (tensor_info const& t : in.tensors()) in.read(t, to), to += t.count();
                    }));
  }
  double const megabytes = double(size) / 1e6;
  fmt::print("{:5} {:.0f} MB  plain read {:.0f} MB/s  load as float {:.0f} MB/s  ratio {:.2f}\n", name_of(type), megabytes,
             megabytes / read, megabytes / load, read / load);
}
}  // namespace

int main(int count, char** given) {
  std::size_t const megabytes = count > 1 ? std::strtoul(given[1], nullptr, 10) : 500;
  if (megabytes < 1 || megabytes > 100'000) return fmt::print(stderr, "load: give megabytes, 1 to 100000\n"), 2;
  path const file = std::filesystem::temp_directory_path() / fmt::format("weft-load-{}.safetensors", ::getpid());
  try {
    for (dtype type : {dtype::F32, dtype::BF16, dtype::F16}) compare(file, type, megabytes * 1'000'000);
  } catch (input_error const& e) {
    fmt::print(stderr, "load: {}\n", e.what());
    std::filesystem::remove(file);
    return 2;
  }
  std::filesystem::remove(file);
}
