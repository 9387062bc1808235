// dataset.cpp — what a file of rows costs: reading and checking all of it once, memory held, and rows read again in random order.
//   build/bench/dataset FOLDER FILE...     the tokenizer's folder, JSONL files of prompts
#include <chrono>
#include <fstream>

#include <weft/io/dataset.hpp>

namespace {
using namespace weft::io;
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void forget_resident() { std::ofstream("/proc/self/clear_refs") << 5; }
double most_resident() {  // MB, since forget_resident()
  std::string const status = read_file("/proc/self/status", 1 << 20);
  return 1.024e-3 * static_cast<double>(std::strtol(status.c_str() + status.find("VmHWM:") + 6, nullptr, 10));
}
}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return fmt::print(stderr, "usage: dataset FOLDER FILE...\n"), 2;
  try {
    auto const words = read_tokenizer(arguments[1]);
    std::vector<path> const files(arguments + 2, arguments + count);
    double bytes = 0;
    for (path const& file : files) bytes += static_cast<double>(std::filesystem::file_size(file));
    dataset_options options;
    options.vocab = words->size(), options.filter_overlong_prompts = true;
    forget_resident();
    double const before = most_resident(), from = now();
    dataset const data(files, options, words.get());
    double const opened = now();
    auto const& n = data.counted();
    fmt::print("{:.0f} MB, {} rows, {} left out as too long: checked in {:.1f} s ({:.1f} MB/s), {:.1f} MB more memory\n", bytes / 1e6,
               n.read, n.filtered, opened - from, bytes / 1e6 / (opened - from), most_resident() - before);
    std::size_t const rows = 10000;
    double const again = now();
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < rows; ++i) tokens += data.row(shuffled(i % data.size(), data.size(), 0, 1)).prompt.size();
    fmt::print("{} rows in random order: {:.0f} rows/s, {:.0f} tokens/s, {:.1f} MB more memory\n", rows, double(rows) / (now() - again),
               double(tokens) / (now() - again), most_resident() - before);
  } catch (input_error const& e) { return fmt::print(stderr, "dataset: {}\n", e.what()), 2; }
}
