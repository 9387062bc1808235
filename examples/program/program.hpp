// program.hpp — what every program's main does: command line, configuration, --help, --version, errors. CLI11 and yaml-cpp stay behind it.
// Exit codes: 0 done; 1 failure; 2 wrong use, configuration or input, after one line `name: message` on stderr; 130 and 143 for a run that
// Ctrl-C or SIGTERM ended, after a checkpoint.
#pragma once
#include <weft/train/options.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace program {

struct about {
  std::string name, does;      // does: one line
  std::string algorithm = {};  // the recipe that this program runs; empty: any
};

// A program with flags of its own. A name without dashes is a positional argument. The default is what the field holds.
struct flag {
  std::string name;
  std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*> to;
  std::string help;  // with the unit
  bool required = false;
};
int main(int argc, char** argv, about const&, std::vector<flag> const&, std::function<int()> const& body);

// A trainer: every knob as key=value, --config, and short flags for the common ones. Prints what was set and what has no effect.
struct request {
  weft::train::options options;
  std::string configuration;  // all of it, resolved, as YAML
};
int main(int argc, char** argv, about const&, std::function<int(request const&)> const& body);

}  // namespace program
