// input_error.hpp — what the outside world got wrong: a file, a setting, a row. Programs print `name: message` and exit with 2.
// A message is one line: what, which value, what to do.
#pragma once
#include <stdexcept>

namespace weft::io {
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
}  // namespace weft::io
