// What a step waited for: shares of its whole, and the name of the largest.
#include <doctest/doctest.h>
#include <weft/train/bottleneck.hpp>

#include <string_view>

using namespace weft::train;
namespace {
double sum(bottleneck const& b) {
  double all = 0;
  for (waiting const& w : b.all) all += w.share;
  return all;
}
std::string_view named(step_times t) { return bottleneck_of(t).named().name; }
}  // namespace

TEST_CASE("the shares of a step are its whole, whatever it did") {
  for (double busy : {0.0, 0.3, 1.0})
    for (double replayed : {0.0, 0.5})
      for (bool recomputes : {false, true}) {
        step_times const t{10, 9, 4, 1.5, 0.5, 7, busy, replayed, recomputes};
        auto const b = bottleneck_of(t);
        CHECK(sum(b) == doctest::Approx(1));
        for (waiting const& w : b.all) CHECK(w.share >= 0);
      }
}
TEST_CASE("the largest of what a knob moves is named, from a tenth of the step on; else the computing") {
  CHECK(named({10, 10, 6, 0, 0, 10, 0.5, 0, false}) == "straggler");
  CHECK(named({10, 10, 4, 2, 0, 8, 1, 0, false}) == "reward");
  CHECK(named({10, 7, 4, 0, 0, 7, 1, 0, false}) == "data");
  CHECK(named({10, 10, 4, 0, 2, 8, 1, 0, false}) == "link");
  CHECK(named({10, 10, 2, 0, 0, 10, 1, 0, true}) == "memory");
  CHECK(named({10, 10, 6, 0, 0, 10, 1, 0.4, false}) == "memory");
  CHECK(named({10, 9.5, 6, 0.9, 0, 9, 1, 0, false}) == "generation");
  CHECK(named({10, 9.5, 3, 0.9, 0, 9, 1, 0, false}) == "update");
  CHECK(std::string_view(bottleneck_of({10, 10, 6, 0, 0, 10, 1, 0.4, false}).named().knob) == "rollout.kv_pages");
  CHECK(std::string_view(bottleneck_of({10, 10, 2, 0, 0, 10, 1, 0, true}).named().knob) == "actor_rollout_ref.model.enable_gradient_checkpointing");
}
