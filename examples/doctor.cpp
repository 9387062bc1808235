// What this machine offers and what a run needs: a line each, ok, warning or failure with its reason and remedy. --json for programs.
// --stress N plays, for N minutes, every kind of move that a graph can ask for (sum, gather, scatter, all_to_all, send) and checks what arrives.
#include <program/program.hpp>
#include <program/version.hpp>
#include <weft/engine/cpu.hpp>
#include <weft/io/gpu_survey.hpp>

#include <fmt/format.h>

namespace {
using namespace weft;

struct row : dim {};
struct column : dim {};
struct cells : port<f32, row, column> {};
struct turned : port<f32, column, row> {};
struct column_sums : sum_over<port<f32, column>, row> {};
struct total : port<f32> {};
struct ranks : axis {};
struct by_row : pool<split<ranks, row>> {};
struct by_column : pool<split<ranks, column>> {};
struct far_away : pool<> {
  using devices = struct other_device;
};

struct fill {  // scattered to the ranks
  static void run(out<cells> c) {
    for (size_t i = 0; i < c.count(); ++i) c.flat(i) = f32(i % 251);
  }
};
struct add_up {  // a part of the sum on each rank
  static void run(in<cells> c, out<column_sums> s) {
    for (size_t k = 0; k < s.count(); ++k) {
      s(k) = 0;
      for (size_t i = 0; i < c.extent<row>(); ++i) s(k) += c(i, k);
    }
  }
};
struct turn {  // cut the other way: all to all
  static void run(in<cells> c, out<turned> t) {
    for (size_t k = 0; k < t.extent<column>(); ++k)
      for (size_t i = 0; i < t.extent<row>(); ++i) t(k, i) = c(i, k);
  }
};
struct judge {  // gathered and sent to one place; both ways must come to the same
  static void run(in<column_sums> s, in<turned> t, out<total> wrong) {
    wrong() = 0;
    for (size_t k = 0; k < s.count(); ++k) {
      f32 sum = 0;
      for (size_t i = 0; i < t.extent<row>(); ++i) sum += t(k, i);
      wrong() += sum == s(k) ? 0 : 1;
    }
  }
};
using all_moves = graph<fill, at<by_row, add_up>, at<by_column, turn>, at<far_away, judge>, keep<total>>;

io::finding stress(double minutes) {
  size_t const rows = 256, columns = 512;
  auto step = bind<all_moves>(cpu{}, row{rows}, column{columns}, ranks{4});
  double const start = detail::now(), until = start + 60 * minutes;
  size_t rounds = 0, wrong = 0;
  do {
    step.step();
    wrong += step.view_of<total>()() != 0;
    ++rounds;
  } while (detail::now() < until);
  double const bytes = double(rounds) * double(rows * columns * 3 + columns * 4) * sizeof(f32);
  std::string const is = fmt::format("{} rounds of every kind of move over 4 devices played by this process, {:.2f} GB/s, {} wrong", rounds,
                                     bytes / (detail::now() - start) / 1e9, wrong);
  return wrong ? io::finding{io::level::failure, "stress", is, "memory or processor is broken: run memtest86 before anything else"}
               : io::finding{io::level::ok, "stress", is, ""};
}

io::findings all(std::string const& folder, std::int64_t megabytes, double minutes) {
  io::findings found;
  auto const add = [&](io::findings more) { found.insert(found.end(), more.begin(), more.end()); };
  for (auto const& [name, value] : program::versions()) found.push_back({io::level::ok, "built with", name + " " + value, ""});
#ifdef WEFT_TOKENIZER
  found.push_back({io::level::ok, "library", "PCRE2 and utf8proc: tokenizers with merges", ""});
#else
  found.push_back({io::level::warning, "library", "built without PCRE2 and utf8proc: tokenizers of single bytes only",
                   "install libpcre2-dev libutf8proc-dev and build again"});
#endif
  found.push_back(io::library("OpenBLAS, the yardstick of benches", "libopenblas.so.0", "libopenblas0"));
  found.push_back(io::library("NCCL", "libnccl.so.2", "needed between GPUs only"));
  found.push_back(io::library("Gloo", "libgloo.so", "needed between processes only"));
  io::findings const gpus = io::gpus();
  bool const has_gpu = gpus.size() > 1;
  add(gpus);
  add({io::processors(), io::memory_left(), io::shared_memory(has_gpu), io::pinned_memory(has_gpu), io::open_files(), io::launcher()});
  add(io::network());
  add(io::storage(folder, static_cast<size_t>(megabytes) << 20));
  found.push_back(io::clock_against(folder));
  if (minutes > 0) found.push_back(stress(minutes));
  return found;
}
}  // namespace

int main(int argc, char** argv) {
  std::string folder = ".";
  std::int64_t megabytes = 256;
  double minutes = 0;
  bool json = false;
  return program::main(argc, argv, {"doctor", "what this machine offers, and what a run needs of it"},
                       {{"--out", &folder, "the folder whose storage is measured"},
                        {"--megabytes", &megabytes, "how much is written and read there; 0: nothing"},
                        {"--stress", &minutes, "minutes of moves between devices, with their results checked"},
                        {"--json", &json, "for programs"}},
                       [&] {
                         if (megabytes < 0 || megabytes > 1 << 20) weft::io::refuse("--megabytes={}: expected 0 to 1048576", megabytes);
                         if (!(minutes >= 0 && minutes <= 1e5)) weft::io::refuse("--stress={}: expected minutes, at least 0", minutes);
                         auto const found = all(folder, megabytes, minutes);
                         int failures = 0, warnings = 0;
                         for (auto const& f : found) failures += f.how == io::level::failure, warnings += f.how == io::level::warning;
                         if (json) fmt::print("{}\n", io::as_json(found).dump(1));
                         else {
                           for (auto const& f : found)
                             fmt::print("{:<8} {:<14} {}{}{}\n", io::name_of(f.how), f.what, f.is,
                                        f.remedy.empty() ? "" : "\n                        -> ", f.remedy);
                           fmt::print("{} ok, {} warnings, {} failures\n", int(found.size()) - warnings - failures, warnings, failures);
                         }
                         return failures ? 1 : 0;
                       });
}
