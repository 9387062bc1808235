// Learning rate, clipping, and the guard against steps that are no number.
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <weft/optim/clip.hpp>
#include <weft/optim/schedule.hpp>

using namespace weft::optim;
using doctest::Approx;

TEST_CASE("warm-up rises in equal steps from 0 and ends at the rate") {
  schedule s;
  s.lr = 2, s.lr_warmup_steps = 4, s.total_training_steps = 10;
  for (int step = 0; step < 4; ++step) CHECK(learning_rate(s, step) == Approx(2 * step / 4.0));
  for (int step = 4; step < 20; ++step) CHECK(learning_rate(s, step) == 2);
  s.lr_warmup_steps = -1, s.lr_warmup_steps_ratio = 0.25;
  CHECK(warmup_steps(s) == 2);
  CHECK(learning_rate(s, 1) == Approx(1));
  s.lr_warmup_steps_ratio = 0;
  CHECK(learning_rate(s, 0) == 2);
}

TEST_CASE("cosine falls from the rate to its least part") {
  schedule s;
  s.lr = 1, s.warmup_style = decay::cosine, s.lr_warmup_steps = 10, s.total_training_steps = 110, s.min_lr_ratio = 0.1;
  CHECK(learning_rate(s, 10) == Approx(1));
  CHECK(learning_rate(s, 60) == Approx(0.55));
  CHECK(learning_rate(s, 110) == Approx(0.1));
  for (int step = 10; step < 110; ++step) CHECK(learning_rate(s, step + 1) <= learning_rate(s, step));
  s.min_lr_ratio = 0;
  for (int step = 10; step < 110; ++step)
    CHECK(learning_rate(s, step) == Approx((std::cos(3.141592653589793 * (step - 10) / 100) + 1) / 2));
  s.total_training_steps = 10;  // nothing left after the warm-up
  CHECK(learning_rate(s, 10) == Approx(1));
}

TEST_CASE("the global norm is clipped as torch does it") {
  CHECK(clip_coefficient(0.5, 1) == 1);
  CHECK(clip_coefficient(0, 1) == 1);
  CHECK(clip_coefficient(4, 1) == 1 / (4 + 1e-6));
  CHECK(clip_coefficient(1e6, 0) == 1);
  for (double norm : {1e-3, 1.0, 1.5, 1e9}) CHECK(norm * clip_coefficient(norm, 1) <= 1);
}

TEST_CASE("a step that is no number is left out; three in a row stop the run") {
  double const nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  finite_guard g;
  CHECK(g.admit(1, 2));
  CHECK(!g.admit(nan, 2));
  CHECK(!g.admit(1, infinite));
  CHECK(!g.must_stop());
  CHECK(g.admit(-1, 0));
  for (double bad : {nan, infinite, -infinite}) CHECK(!g.admit(bad, 1));
  CHECK(g.must_stop());
  CHECK(g.skipped == 5);
}
