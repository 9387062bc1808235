// Dynamic sampling and the length penalty of DAPO: a step is full of groups that teach, with the samples, log-probs and scores they were drawn with.
#include "lab.hpp"
using namespace lab;

namespace {
// Rows whose ground truth is even get the same score for every answer, the others the share of digits.
rl::reward_result half_constant(train::answer const& a) {
  if (std::atoi(a.row.ground_truth.c_str()) % 2 == 0) return train::scored(0.5);
  return digits(a);
}
train::options filtering(folder const& at, char const* out) {
  auto o = options_for(at, out);
  o.algorithm.filter_groups.enable = true;
  return o;
}
}  // namespace

TEST_CASE("groups with equal scores are dropped and the step is filled from further batches") {
  folder at;
  auto o = filtering(at, "out");
  run(o, half_constant);
  auto const batches = metric(at.path / "out", "training/num_gen_batches"), dropped = metric(at.path / "out", "training/filtered_groups");
  REQUIRE(batches.size() == 3);
  double all = 0;
  for (double d : dropped) all += d;
  CHECK(all > 0);
  for (double b : batches) CHECK(b >= 1);
  CHECK(*std::max_element(batches.begin(), batches.end()) > 1);
  // what is learned from is what was drawn: the first ratio is 1 to the bit
  for (char const* name : {"actor/ppo_kl", "actor/pg_clipfrac"})
    for (double v : metric(at.path / "out", name)) CHECK(v == 0.0);
  for (double v : metric(at.path / "out", "critic/advantages/max")) CHECK(v > 0);
}
TEST_CASE("a resumed run draws on from where it was") {
  folder at;
  auto o = filtering(at, "whole");
  run(o, half_constant);
  auto part = filtering(at, "part");
  part.trainer.total_training_steps = 2;
  run(part, half_constant);
  part.trainer.total_training_steps = 3;
  run(part, half_constant);
  CHECK(weights(at.path / "whole") == weights(at.path / "part"));
}
TEST_CASE("rewards that never differ end the run with a reason") {
  folder at;
  auto const constant = [](train::answer const&) { return train::scored(1); };
  auto o = filtering(at, "limited");
  o.algorithm.filter_groups.max_num_gen_batches = 2;
  CHECK_THROWS_WITH(run(o, constant), doctest::Contains("2 batches gave 0 groups"));
  CHECK_THROWS_WITH(run(filtering(at, "endless"), constant), doctest::Contains("groups whose scores differ"));
}
TEST_CASE("answers lose up to penalty_factor in the last len tokens; that alone does not keep a group with metric=acc") {
  folder at;
  auto o = options_for(at, "long");
  o.overlong = {true, 4, 0.5};
  auto const constant = [](train::answer const&) { return train::scored(1); };
  run(o, constant);
  auto const least = metric(at.path / "long", "critic/score/min"), most = metric(at.path / "long", "critic/score/max"),
             length = metric(at.path / "long", "response_length/max");
  for (size_t i = 0; i < least.size(); ++i) {
    double const longest = std::max(0.0, length[i] - 3);  // of 7 tokens, the last 4
    CHECK(least[i] == doctest::Approx(1 - 0.5 * longest / 4));
    CHECK(most[i] <= 1);
  }
  o.algorithm.filter_groups = {true, "acc", 1}, o.trainer.default_local_dir = (at.path / "acc").string();
  CHECK_THROWS_WITH(run(o, constant), doctest::Contains("groups whose scores differ"));
}
