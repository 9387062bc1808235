// tokenizer.cpp — how fast a tokenizer encodes, next to the splitting of the same text by PCRE2 alone. One thread; the best of 15 runs each, in turns.
//   build/bench/tokenizer FOLDER [FILE...]     texts; none: the folder's tokenizer.json, which is mostly short words
#include <weft/io/tokenizer.hpp>

#ifdef WEFT_TOKENIZER
#include <time.h>

#include <algorithm>

#include <weft/io/bpe_tokenizer.hpp>

namespace {
using namespace weft::io;
double seconds_of_thread() {  // spent by this thread: other programs on the machine do not count
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
template <class F> void keep_best(double& best, F const& f) {
  double const from = seconds_of_thread();
  f();
  best = std::min(best, seconds_of_thread() - from);
}
void measure(path const& folder, tokenizer const& words, path const& file) {
  path const about = folder / "tokenizer.json";
  std::string const text = read_file(file, std::uint64_t{1} << 30);
  if (!is_utf8(text)) refuse("{} is not UTF-8", file.string());
  pre_tokenizer const steps(parse_json(read_file(about, 64 << 20), about.string()).at("pre_tokenizer", about.string()), about.string());
  std::size_t pieces = 0, ids = 0;
  double split = 1e9, encode = 1e9;
  for (int round = 0; round < 15; ++round) {  // in turns: what disturbs the machine meets both
    keep_best(split, [&] {
      pre_tokenizer::cutter cut(steps);
      pieces = 0;
      cut(text, [&](std::string_view) { ++pieces; });
    });
    keep_best(encode, [&] { ids = words.encode(text).size(); });
  }
  auto rate = [&](double seconds) { return static_cast<double>(text.size()) / seconds / 1e6; };
  fmt::print("{:40} {:6.1f} MB  {:9} pre-tokens {:9} ids  split {:6.1f} MB/s  encode {:6.1f} MB/s  ratio {:.2f}\n",
             file.filename().string(), static_cast<double>(text.size()) / 1e6, pieces, ids, rate(split), rate(encode), split / encode);
}
}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return fmt::print(stderr, "usage: tokenizer FOLDER [FILE...]\n"), 2;
  try {
    path const folder = arguments[1];
    auto const words = read_tokenizer(folder);
    if (count == 2) measure(folder, *words, folder / "tokenizer.json");
    for (int i = 2; i < count; ++i) measure(folder, *words, arguments[i]);
  } catch (input_error const& e) { return fmt::print(stderr, "tokenizer: {}\n", e.what()), 2; }
}
#else
int main() { fmt::print("tokenizer: built without PCRE2 and utf8proc (libpcre2-dev, libutf8proc-dev)\n"); }
#endif
