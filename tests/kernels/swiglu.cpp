#include <weft/kernels/swiglu.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

TEST_CASE("swiglu follows its formula, alone and in place, at any offset") {
  cpu_context on;
  size_t const n = 1003;
  auto const gate = help::values<float>(n, 1, 8), up = help::values<float>(n, 2);
  std::vector<double> expected(n);
  for (size_t i = 0; i < n; ++i) expected[i] = double(gate[i]) / (1 + std::exp(-double(gate[i]))) * double(up[i]);
  std::vector<float> out(n), in_place = gate;
  swiglu(on, n, gate.data(), up.data(), out.data());
  CHECK(help::distance(out, expected) < 3e-7);
  swiglu(on, n, in_place.data(), up.data(), in_place.data());
  CHECK(help::same_bits(out, in_place));
  for (size_t first = 0; first < 40; ++first) {
    std::vector<float> part(9);
    swiglu(on, part.size(), &gate[first], &up[first], part.data());
    CHECK(std::memcmp(part.data(), &out[first], part.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("swiglu of huge and of non-finite gates") {
  cpu_context on;
  float const gate[] = {200, -200, 3e38f, -3e38f, HUGE_VALF, std::nanf("")}, up[] = {1, 1, 1, 1, 1, 1};
  float out[6];
  swiglu(on, 6, gate, up, out);
  CHECK(out[0] == 200.0f);
  CHECK(std::fabs(out[1]) < 1e-30f);
  CHECK(out[2] == 3e38f);
  CHECK(std::fabs(out[3]) < 1e-30f);
  CHECK(out[4] == HUGE_VALF);
  CHECK(std::isnan(out[5]));
}

TEST_CASE("swiglu_backward is the derivative of swiglu, also in place") {
  cpu_context on;
  size_t const n = 53;
  auto gate = help::values<double>(n, 1, 3), up = help::values<double>(n, 2);
  auto const dout = help::values<double>(n, 3);
  std::vector<double> out(n), dgate(n), dup(n);
  auto const loss = [&] {
    swiglu(on, n, gate.data(), up.data(), out.data());
    return help::dot(out, dout);
  };
  swiglu_backward(on, n, gate.data(), up.data(), dout.data(), dgate.data(), dup.data());
  CHECK(help::distance(dgate, help::slopes(gate, loss)) < 1e-8);
  CHECK(help::distance(dup, help::slopes(up, loss)) < 1e-8);
  std::vector<float> g(gate.begin(), gate.end()), u(up.begin(), up.end()), d(dout.begin(), dout.end());
  swiglu_backward(on, n, g.data(), u.data(), d.data(), g.data(), u.data());
  CHECK(help::distance(g, dgate) < 1e-6);
  CHECK(help::distance(u, dup) < 1e-6);
}
