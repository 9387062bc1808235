#include <program/recipes.hpp>
#include <weft/io/survey.hpp>

#include <fmt/format.h>

namespace program {
void check_machine(std::string const& out) {
  for (auto const& f : weft::io::quick_checks(out, 0)) {
    if (f.how == weft::io::level::failure) weft::io::refuse("{}: {}; {}", f.what, f.is, f.remedy);
    fmt::print(stderr, "{}: {}; {}\n", f.what, f.is, f.remedy);
  }
}
}  // namespace program
