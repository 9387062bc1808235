#include <weft/kernels/rope.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
std::vector<double> angle_table(size_t positions, size_t head_dim) {
  std::vector<double> table(positions * head_dim);
  for (size_t p = 0; p < positions; ++p)
    for (size_t i = 0; i < head_dim / 2; ++i) {
      double const angle = double(p) * std::pow(10000.0, -2.0 * double(i) / double(head_dim));
      table[p * head_dim + i] = std::cos(angle), table[p * head_dim + head_dim / 2 + i] = std::sin(angle);
    }
  return table;
}
}  // namespace

TEST_CASE("rope turns the pairs (i, i + half) by the angle of the position; its backward turns them back") {
  cpu_context on;
  for (size_t head_dim : {2, 6, 32, 64, 80}) {
    size_t const tokens = 5, heads = 3;
    auto const table = angle_table(50, head_dim);
    std::vector<float> const narrow(table.begin(), table.end());
    auto const positions = help::integers(tokens, 3, 50);
    auto const x = help::values<double>(tokens * heads * head_dim, 4);
    auto y = x;
    std::vector<float> z(x.begin(), x.end());
    rope(on, tokens, heads, head_dim, positions.data(), table.data(), y.data());
    rope(on, tokens, heads, head_dim, positions.data(), narrow.data(), z.data());
    std::vector<double> expected(x.size());
    for (size_t t = 0; t < tokens; ++t)
      for (size_t h = 0; h < heads; ++h)
        for (size_t i = 0; i < head_dim; ++i) {
          size_t const half = head_dim / 2, at = (t * heads + h) * head_dim, row = size_t(positions[t]) * head_dim;
          double const other = i < half ? -x[at + i + half] : x[at + i - half];  // rotate_half
          expected[at + i] = x[at + i] * table[row + i % half] + other * table[row + half + i % half];
        }
    CHECK(help::distance(y, expected) < 1e-15);
    CHECK(help::distance(z, expected) < 1e-6);
    rope_backward(on, tokens, heads, head_dim, positions.data(), table.data(), y.data());
    CHECK(help::distance(y, x) < 1e-15);
  }
}
