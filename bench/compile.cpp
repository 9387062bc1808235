// What weft costs the compiler: user seconds, best of several, also as multiples of a fixed file that is compiled in the same run.
//   build/bench/compile              graphs of 8, 16, 32 and 64 stages, examples/grpo.cpp with its recipe, every public header
//   build/bench/compile --check      what has a budget, and nothing else; ends with 1 if one is passed (a test)
//   --nvcc NVCC adds the graphs as .cu files; --compiler, --include and --source say what is measured
#include <program/program.hpp>
#include <weft/io/file.hpp>

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <limits>

namespace {
using weft::io::path;

struct folder {
  path at;
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-compile-XXXXXX").string();
    if (!::mkdtemp(name.data())) weft::io::refuse("no temporary folder can be made: {}", name);
    at = name;
  }
  ~folder() { std::filesystem::remove_all(at); }
};

// User time of a command, best of `tries`; what it prints is thrown away. Below 0: it failed.
double seconds(std::vector<std::string> const& command, int tries) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    std::fflush(nullptr);  // the child must not write it again
    pid_t const child = ::fork();
    if (child == 0) {
      ::setenv("CCACHE_DISABLE", "1", 1);
      if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) ::_exit(126);
      std::vector<char*> arguments;
      for (auto const& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
      arguments.push_back(nullptr);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    int status = 0;
    rusage used;
    if (child < 0 || ::wait4(child, &status, 0, &used) != child || status != 0) return -1;
    best = std::min(best, double(used.ru_utime.tv_sec) + 1e-6 * double(used.ru_utime.tv_usec));
  }
  return best;
}

// A chain with branches: every stage reads two edges and state, has a setting and scratch; half of them in a loop in a pool.
std::string graph_of(int stages) {
  std::string first, second;
  for (int i = 0; i < stages; ++i)
    (i < stages / 2 ? first : second) += fmt::format("{}stage<{}>", i == 0 || i == stages / 2 ? "" : ", ", i);
  return fmt::format(R"(#include <weft/engine/cpu.hpp>
using namespace weft;
struct sample : dim {{}}; struct width : dim {{}}; struct mini : part<sample> {{}}; struct data : axis {{}};
struct trainer : pool<split<data, sample>> {{}};
struct options {{ float rate; }}; struct room : port<f32, width> {{}};
template <int> struct p : port<f32, sample> {{}}; template <int> struct w : port<f32, width> {{}};
template <int I> struct stage {{
  static void run(in<p<I>> a, in<p<I + 1>> b, state<w<I % 8>> s, setting<options> o, scratch<room> r, out<p<I + 2>> c) {{
    r(0) = s(0);
    for (size_t i = 0; i < c.count(); ++i) c(i) = a(i) + b(i) * o->rate;
  }}
}};
using g = graph<feed<p<0>>, feed<p<1>>, {}, at<trainer, each<mini, {}>>, keep<p<{}>>, keep<p<{}>>>;
void f() {{ bind<g>(cpu{{}}, sample{{8}}, width{{8}}, mini{{2}}, data{{2}}, options{{1}}).step(); }}
)",
                     first, second, stages, stages + 1);
}

struct budget {
  char const* name;
  double most;  // times the reference
};
// On the machine of bench/RESULTS.md the reference takes 0.3 s; with it examples/grpo.cpp stays below 30 s.
constexpr budget budgets[] = {
    {"weft.hpp", 1.0}, {"graph of 16 stages", 4.0}, {"graph of 64 stages", 12.0}, {"examples/grpo.cpp and its recipe", 100}};
constexpr double nvcc_budget = 7;  // what a graph of 16 stages adds to an empty file
}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> compiler{"g++"};
  std::string source = ".", nvcc;
  bool check = false;
  return program::main(
      argc, argv, {"compile", "user time of the compiler for headers, graphs and a program"},
      {{"--compiler", &compiler, "command"},
       {"--nvcc", &nvcc, "also graphs as .cu files, by this nvcc"},
       {"--source", &source, "top of weft's tree"},
       {"--check", &check, "budgets only"}},
      [&] {
        folder const temporary;
        path const include = path(source) / "include", file = temporary.at / "source.cpp", cuda_file = temporary.at / "source.cu";
        auto command = compiler;
        for (auto const& f :
             {std::string("-std=c++20"), "-I" + include.string(), std::string("-c"), std::string("-o"), std::string("/dev/null")})
          command.push_back(f);
        auto const of_text = [&](std::string const& text, int tries) {
          weft::io::write_file(file, text);
          auto all = command;
          all.push_back(file.string());
          double const s = seconds(all, tries);
          if (s < 0) weft::io::refuse("{} cannot compile:\n{}", compiler[0], text);
          return s;
        };
        double const reference = of_text("#include <algorithm>\n#include <string>\n#include <vector>\n", 5);
        bool passed = true;
        fmt::print("reference (<algorithm>, <string>, <vector>): {:.2f} s of user time\n\n| what | seconds | times the reference | budget "
                   "|\n| --- | --- | --- | --- |\n",
                   reference);
        auto const line = [&](std::string const& name, double s) {
          auto const* const b = std::find_if(std::begin(budgets), std::end(budgets), [&](budget const& x) { return name == x.name; });
          bool const has = b != std::end(budgets), over = has && s / reference > b->most;
          passed = passed && !over;
          fmt::print("| {} | {:.2f} | {:.2f} | {} |\n", name, s, s / reference,
                     has ? fmt::format("{}{}", b->most, over ? ": PASSED BY" : "") : "");
          std::fflush(stdout);
        };
        line("weft.hpp", of_text("#include <weft/weft.hpp>\n", 5));
        for (int stages : {8, 16, 32, 64})
          if (!check || stages == 16 || stages == 64) line(fmt::format("graph of {} stages", stages), of_text(graph_of(stages), 5));
        double program_seconds = 0;
        for (char const* unit : {"examples/grpo.cpp", "examples/program/recipe_grpo.cpp"}) {
          auto all = command;
          for (auto const& a : {std::string("-O1"), "-I" + (path(source) / "examples").string(), std::string("-DWEFT_COMPILED"),
                                std::string("-DWEFT_TOKENIZER"), (path(source) / unit).string()})
            all.push_back(a);
          double const s = seconds(all, 1);
          if (s < 0) weft::io::refuse("{} cannot compile {}", compiler[0], unit);
          program_seconds += s;
        }
        line("examples/grpo.cpp and its recipe", program_seconds);
        if (!nvcc.empty()) {
          auto const cu = [&](std::string const& text) {
            weft::io::write_file(cuda_file, text);
            double const s =
                seconds({nvcc, "-std=c++20", "-arch", "sm_90", "-I" + include.string(), "-c", "-o", "/dev/null", cuda_file.string()},
                        check ? 3 : 2);
            if (s < 0) weft::io::refuse("{} cannot compile:\n{}", nvcc, text);
            return s;
          };
          double const empty = cu("");
          line("nvcc, an empty file", empty);
          for (int stages : {8, 16, 32, 64}) {
            if (check && stages != 16) continue;
            double const s = cu(graph_of(stages));
            line(fmt::format("nvcc, graph of {} stages", stages), s);
            if (stages == 16 && (s - empty) / reference > nvcc_budget) {
              passed = false;
              fmt::print("nvcc: 16 stages add {:.2f} times the reference to an empty file, more than {}\n", (s - empty) / reference,
                         nvcc_budget);
            }
          }
        }
        if (check) return passed ? 0 : 1;
        std::vector<std::string> headers;
        for (auto const& entry : std::filesystem::recursive_directory_iterator(include / "weft"))
          if (std::string const name = entry.path().lexically_relative(include).string();
              name.ends_with(".hpp") && name.find("cuda") == name.npos)
            headers.push_back(name);
        std::sort(headers.begin(), headers.end());
        auto all = command;
        all.insert(all.begin() + 1, "-DWEFT_TOKENIZER");
        command = all;
        for (auto const& h : headers) line(h, of_text("#include <" + h + ">\n", 2));
        return passed ? 0 : 1;
      });
}
