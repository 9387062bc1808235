#include <weft/kernels/rmsnorm.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
template <class T>
std::vector<double> reference(size_t rows, size_t width, std::vector<T> const& x, std::vector<T> const& weight, double eps) {
  std::vector<double> y(rows * width);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += double(x[r * width + i]) * double(x[r * width + i]);
    for (size_t i = 0; i < width; ++i)
      y[r * width + i] = double(x[r * width + i]) / std::sqrt(sum / double(width) + eps) * double(weight[i]);
  }
  return y;
}
template <class T> void check(double tolerance) {
  for (size_t width : {1, 3, 16, 37, 64, 384, 1000}) {
    size_t const rows = 5;
    auto const x = help::values<T>(rows * width, width), weight = help::values<T>(width, 9);
    std::vector<T> y(rows * width), one(width), inverse(rows);
    cpu_context on;
    rmsnorm(on, rows, width, x.data(), weight.data(), T(1e-5), y.data(), inverse.data());
    CHECK(help::distance(y, reference(rows, width, x, weight, 1e-5)) < tolerance);
    for (size_t r = 0; r < rows; ++r) {  // alone, in place
      one.assign(x.begin() + long(r * width), x.begin() + long((r + 1) * width));
      rmsnorm(on, 1, width, one.data(), weight.data(), T(1e-5), one.data(), static_cast<T*>(nullptr));
      CHECK(std::memcmp(one.data(), y.data() + r * width, width * sizeof(T)) == 0);
    }
  }
}
}  // namespace

TEST_CASE("rmsnorm follows its formula; a row has the same bits alone and in place") {
  check<float>(1e-6);
  check<double>(1e-14);
}

TEST_CASE("rmsnorm_backward is the derivative of rmsnorm") {
  cpu_context on;
  size_t const rows = 3, width = 21;
  auto x = help::values<double>(rows * width, 1), weight = help::values<double>(width, 2);
  auto const dy = help::values<double>(rows * width, 3), before = help::values<double>(rows * width, 4);
  std::vector<double> y(rows * width), inverse(rows), dx = before, dweight(width, 0.5);
  auto const loss = [&] {
    rmsnorm(on, rows, width, x.data(), weight.data(), 1e-2, y.data(), inverse.data());
    return help::dot(y, dy);
  };
  loss();
  rmsnorm_backward(on, rows, width, x.data(), weight.data(), inverse.data(), dy.data(), dx.data(), dweight.data());
  auto expected_dx = help::slopes(x, loss), expected_dweight = help::slopes(weight, loss);
  for (size_t i = 0; i < dx.size(); ++i) expected_dx[i] += before[i];
  for (double& d : expected_dweight) d += 0.5;
  CHECK(help::distance(dx, expected_dx) < 1e-7);
  CHECK(help::distance(dweight, expected_dweight) < 1e-7);
}

TEST_CASE("rmsnorm and its backward have the same bits on every pool, and when the rows are cut into calls") {
  size_t const rows = 40, width = 200;
  auto const x = help::values<float>(rows * width, 1), weight = help::values<float>(width, 2), dy = help::values<float>(rows * width, 3);
  std::vector<float> first_dx, first_dweight;
  help::on_every_pool([&](cpu_context& on) {
    for (size_t cut : {40, 13}) {
      std::vector<float> y(rows * width), inverse(rows), dx(rows * width), dweight(width);
      for (size_t r = 0; r < rows; r += cut) {
        size_t const count = rows - r < cut ? rows - r : cut;
        rmsnorm(on, count, width, &x[r * width], weight.data(), 1e-5f, &y[r * width], &inverse[r]);
        rmsnorm_backward(on, count, width, &x[r * width], weight.data(), &inverse[r], &dy[r * width], &dx[r * width], dweight.data());
      }
      if (first_dx.empty()) first_dx = dx, first_dweight = dweight;
      CHECK(help::same_bits(dx, first_dx));
      CHECK(help::same_bits(dweight, first_dweight));
    }
  });
}
