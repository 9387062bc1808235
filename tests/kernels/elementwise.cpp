#include <weft/kernels/elementwise.hpp>
#include <weft/kernels/embedding.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

TEST_CASE("add, fill, add_bias and bias_backward") {
  size_t const rows = 33, width = 150, n = rows * width;
  auto const x = help::values<float>(n, 1), y = help::values<float>(n, 2), bias = help::values<float>(width, 3);
  help::on_every_pool([&](cpu_context& on) {
    auto sum = y, biased = y, filled = y, gradient = bias, in_parts = bias;
    add(on, n, x.data(), sum.data());
    fill(on, n, 3.0f, filled.data());
    add_bias(on, rows, width, bias.data(), biased.data());
    bias_backward(on, rows, width, x.data(), gradient.data());
    bias_backward(on, 10, width, x.data(), in_parts.data());
    bias_backward(on, rows - 10, width, x.data() + 10 * width, in_parts.data());
    CHECK(help::same_bits(gradient, in_parts));
    bool right = true;
    for (size_t i = 0; i < n; ++i) right = right && sum[i] == x[i] + y[i] && filled[i] == 3 && biased[i] == y[i] + bias[i % width];
    CHECK(right);
    for (size_t i = 0; i < width; ++i) {
      float expected = bias[i];
      for (size_t r = 0; r < rows; ++r) expected += x[r * width + i];
      CHECK(gradient[i] == expected);
    }
  });
}

TEST_CASE("embed copies rows; its backward adds the tokens in order") {
  size_t const tokens = 200, width = 77, vocab = 11;
  auto const ids = help::integers(tokens, 1, vocab);
  auto const table = help::values<float>(vocab * width, 2), dout = help::values<float>(tokens * width, 3);
  auto expected = table;
  for (size_t t = 0; t < tokens; ++t)
    for (size_t i = 0; i < width; ++i) expected[size_t(ids[t]) * width + i] += dout[t * width + i];
  help::on_every_pool([&](cpu_context& on) {
    std::vector<float> out(tokens * width);
    embed(on, tokens, width, ids.data(), table.data(), out.data());
    bool right = true;
    for (size_t i = 0; i < out.size(); ++i) right = right && out[i] == table[size_t(ids[i / width]) * width + i % width];
    CHECK(right);
    auto gradient = table;
    embed_backward(on, tokens, width, ids.data(), dout.data(), gradient.data());
    CHECK(help::same_bits(gradient, expected));
  });
}
