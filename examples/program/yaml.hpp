// yaml.hpp — a configuration file as dotted names and values. yaml-cpp stays behind it.
#pragma once
#include <string>
#include <vector>

namespace program {

struct entry {
  std::string key, value, where;
};  // data.train_batch_size, 64, F.yaml:3

// Errors (weft::io::input_error) are one line that starts with file:line.
std::vector<entry> parse_yaml(std::string const& text, std::string const& name);
std::vector<entry> read_yaml(std::string const& path);

}  // namespace program
