// Several rewards as one: weights, what does not apply, failures, sources, clipping; and a run in which some answers have no score.
#include <weft/train/reward_mix.hpp>
#include "lab.hpp"
using namespace lab;
using train::answer, rl::reward_result;

namespace {
io::data_row row_of(char const* source) {
  io::data_row row;
  row.data_source = source;
  return row;
}
train::reward_function constant(double x) {
  return [x](answer const&) { return train::scored(x); };
}
train::reward_function failing(reward_result::status what) {
  return [what](answer const&) -> reward_result { return {0, what}; };
}
}  // namespace

TEST_CASE("a weighted sum leaves out what does not apply, and fails with what fails") {
  auto const row = row_of("math");
  answer const a{row, "12", {}};
  auto const sum = [&](std::vector<train::reward_part> parts) { return train::weighted_sum(std::move(parts))(a); };
  CHECK(double(sum({{constant(2), 0.5}, {constant(3), 2}}).value) == 7);
  auto const partly = sum({{constant(2), 0.5}, {train::for_source("code", constant(100)), 1}});
  CHECK(partly.what == reward_result::scored);
  CHECK(double(partly.value) == 1);
  CHECK(sum({{train::for_source("code", constant(100)), 1}}).what == reward_result::absent);
  CHECK(sum({}).what == reward_result::absent);
  CHECK(sum({{constant(2), 1}, {failing(reward_result::timeout), 1}}).what == reward_result::timeout);
  CHECK(sum({{failing(reward_result::error), 0}, {constant(2), 1}}).what == reward_result::error);
}
TEST_CASE("weights by source, and clipping") {
  auto const math = row_of("math"), code = row_of("code");
  auto const f = train::weighted_by_source({{"code", 0.25}}, constant(8));
  CHECK(double(f({math, "", {}}).value) == 8);
  CHECK(double(f({code, "", {}}).value) == 2);
  CHECK(double(train::clipped(5, constant(8))({math, "", {}}).value) == 5);
  CHECK(double(train::clipped(5, constant(-8))({math, "", {}}).value) == -5);
  auto const nan = train::clipped(5, constant(NAN))({math, "", {}});
  CHECK(nan.value != nan.value);
}
TEST_CASE("in a run, answers to which no reward applies are left out of their groups") {
  folder at;
  auto const some_only = [](answer const& a) { return a.ids[0] % 3 == 0 ? train::not_applicable() : digits(a); };
  run(options_for(at), train::weighted_sum({{some_only, 1}}));
  auto const ratio = metric(at.path / "out", "reward/error_ratio");
  REQUIRE(ratio.size() == 3);
  for (double r : ratio) CHECK((r > 0 && r < 1));
}
