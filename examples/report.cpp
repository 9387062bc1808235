// Lays runs side by side in one page: `report RUN...` writes report.html. One folder alone gets its own report anew, in the folder.
#include <program/program.hpp>
#include <weft/io/report.hpp>

#include <fmt/format.h>

int main(int argc, char** argv) {
  std::vector<std::string> runs;
  std::string out;
  std::int64_t steps = 1500;
  return program::main(
      argc, argv, {"report", "lays runs side by side in one page that needs no network"},
      {{"RUN", &runs, "folders of runs", true},
       {"--out", &out, "the page; RUN/report.html for one run, report.html for several"},
       {"--most-steps", &steps, "longer runs are thinned to this many points a curve"}},
      [&] {
        if (steps < 10) weft::io::refuse("--most-steps={}: it must be at least 10", steps);
        std::vector<weft::io::path> const folders(runs.begin(), runs.end());
        weft::io::path const to = !out.empty() ? weft::io::path(out) : folders.size() == 1 ? folders[0] / "report.html" : "report.html";
        weft::io::write_file(to, weft::io::report_html(folders, static_cast<std::size_t>(steps)));
        fmt::print("{}\n", to.string());
        return 0;
      });
}
