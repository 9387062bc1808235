#include <doctest/doctest.h>

#include <weft/model/initialise.hpp>

#include "support.hpp"

using namespace test;

TEST_CASE("initial weights are normal, norms 1, biases 0, gaps 0; the same seed gives the same bits and another seed others") {
  for (family const& f : families()) {
    CAPTURE(f.name);
    std::vector<float> w(model::parameter_count(f.c), 5.0f), again(w.size()), other(w.size());
    model::initialise(f.c, 1, w.data());
    model::initialise(f.c, 1, again.data());
    model::initialise(f.c, 2, other.data());
    CHECK(same_bits(w, again));
    std::vector<float> rest = w;
    double sum = 0, squares = 0;
    size_t count = 0, equal = 0;
    model::for_each_tensor(f.c, [&](model::tensor const& t) {
      for (size_t i = t.offset; i < t.offset + t.size(); ++i) {
        rest[i] = 0;
        if (t.cols) sum += double(w[i]), squares += double(w[i]) * double(w[i]), ++count, equal += w[i] == other[i];
        else CHECK(w[i] == (std::string(t.name).ends_with("bias") ? 0.0f : 1.0f));
      }
    });
    CHECK(std::abs(sum / double(count)) < 5 * 0.02 / std::sqrt(double(count)));
    CHECK(std::sqrt(squares / double(count)) == doctest::Approx(0.02).epsilon(5 / std::sqrt(2 * double(count))));
    CHECK(equal < count / 1000 + 2);
    CHECK(same_bits(rest, std::vector<float>(rest.size())));
  }
}
