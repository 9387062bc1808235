// Aggregation: the values of every mode, and weights that are made of integers only.
#include <doctest/doctest.h>

#include <string>

#include "batch.hpp"

using namespace weft;
using namespace weft::objective;
using doctest::Approx;

namespace {
struct example {
  std::vector<double> loss{1, 2, 3, 4, 5, 0, 0, 0, 7, 7, 7, 7};
  std::vector<i32> mask{1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  double operator()(aggregation mode, double factor = 1) const {
    auto const n = test::count<response>(3, 4, mask);
    double const length[] = {3, 1, 0};
    double total = 0;
    for (size_t i = 0; i < loss.size(); ++i)
      if (mask[i]) total += weight_of(mode, factor, n, length[i / 4]) * loss[i];
    return total;
  }
};
}  // namespace

TEST_CASE("three sequences of 3, 1 and 0 tokens") {
  example const of;
  CHECK(of(aggregation::token_mean) == Approx(2.75));
  CHECK(of(aggregation::token_sum) == Approx(11));
  CHECK(of(aggregation::seq_mean_token_sum) == Approx(5.5));
  CHECK(of(aggregation::seq_mean_token_sum_norm, 4) == Approx(1.375));
  CHECK(of(aggregation::seq_mean_token_mean) == Approx(3.5));
  CHECK(of(aggregation::trl_grpo) == Approx(7. / 3));
  CHECK(of(aggregation::trl_luspo) == Approx((6. * 3 + 5) / 3));
}

TEST_CASE("counts: tokens, sequences with a token, rows") {
  auto const n = test::count<response>(3, 4, example{}.mask);
  CHECK(n.tokens == 4);
  CHECK(n.sequences == 2);
  CHECK(n.rows == 3);
}

TEST_CASE("an empty batch weighs nothing, whatever the mode") {
  for (auto const& mode : aggregation_names)
    if (mode.mode != aggregation::token_sum) CHECK(weight_of(mode.mode, 1, counts<response>{}, 0.0) == 0);
}

TEST_CASE("names are those that users type, each once") {
  for (auto const& a : aggregation_names) {
    int found = 0;
    for (auto const& b : aggregation_names) found += std::string(a.name) == b.name || a.mode == b.mode;
    CHECK(found == 1);
  }
}
