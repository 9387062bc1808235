// Rewards that are missing or no number: the sample is left out and counted, never scored 0; and when a run must stop.
#include <limits>

#include "lab.hpp"
using namespace lab;

namespace {
weft::rl::reward_result short_and_right(weft::train::answer const& a) {
  if (a.text.find(a.row.ground_truth) == a.text.npos) return weft::train::scored(0);
  return weft::train::scored(1.0 / double(a.ids.size()));
}
}  // namespace

TEST_CASE("a reward of one's own sees text, ids and row") {
  folder at;
  run(options_for(at), short_and_right);
  for (double most : metric(at.path / "out", "critic/score/max")) CHECK(most <= 1);
  io::data_row row;
  row.ground_truth = "7";
  std::vector<i32> const ids{'=', '7'};
  CHECK(double(short_and_right({row, "=7", ids}).value) == 0.5);
  CHECK(double(short_and_right({row, "=8", ids}).value) == 0);
}
TEST_CASE("a reward that is not finite, fails or throws leaves its sample out") {
  folder at;
  int calls = 0;
  auto const broken = [&](train::answer const& a) -> rl::reward_result {
    switch (calls++ % 4) {
      case 0:
        return train::scored(std::numeric_limits<double>::quiet_NaN());
      case 1:
        return {0, rl::reward_result::timeout};
      case 2:
        throw std::runtime_error("the scorer broke");
      default:
        return digits(a);
    }
  };
  run(options_for(at), broken);
  for (double ratio : metric(at.path / "out", "reward/error_ratio")) CHECK(ratio == 0.75);
  for (double n : metric(at.path / "out", "reward/not_finite")) CHECK(n == 6);
  for (double n : metric(at.path / "out", "training/dropped_groups")) CHECK(n == 6);  // one scored sample of four: no group
  for (double norm : metric(at.path / "out", "actor/grad_norm")) CHECK(norm == 0.0);
}
TEST_CASE("a step whose every reward is missing changes nothing; three in a row end the run") {
  folder at;
  auto o = options_for(at);
  o.trainer.total_training_steps = 2;
  run(o, [](train::answer const&) -> rl::reward_result { return {0, rl::reward_result::error}; });
  CHECK(weights(at.path / "out") == text_of(at.path / "model" / "model.safetensors"));
  auto more = options_for(at, "more");
  more.trainer.total_training_steps = 8;
  auto const none = [](train::answer const&) -> rl::reward_result { return {0, rl::reward_result::error}; };
  CHECK_THROWS_WITH_AS(run(more, none), doctest::Contains("no sample had a score in 3 steps in a row: every reward is missing"),
                       std::runtime_error);
  CHECK(metric(at.path / "more", "reward/error_ratio") == std::vector<double>{1, 1, 1});
}
TEST_CASE("a model whose logits are no numbers ends the run") {
  folder at;
  auto o = options_for(at);
  auto const c = tiny_config();
  io::write_hf_weights(at.path / "model", c, std::vector<f32>(model::parameter_count(c), std::numeric_limits<f32>::quiet_NaN()).data(),
                       io::dtype::F32);
  o.trainer.total_training_steps = 8;
  CHECK_THROWS_WITH_AS(run(o), doctest::Contains("no sample had a score in 3 steps in a row: the model's logits are not finite"),
                       std::runtime_error);
}
TEST_CASE("three steps in a row without a finite gradient end the run") {
  folder at;
  auto o = options_for(at);
  o.actor.entropy_coeff = std::numeric_limits<double>::infinity();
  o.trainer.total_training_steps = 8;
  CHECK_THROWS_WITH_AS(run(o), doctest::Contains("not finite in 3 steps in a row; stopped at step 3"), std::runtime_error);
}
TEST_CASE("a group of equal scores has no gradient at all") {
  folder at;
  run(options_for(at), [](train::answer const&) { return train::scored(0.7); });
  for (double norm : metric(at.path / "out", "actor/grad_norm")) CHECK(norm == 0.0);
}
TEST_CASE("a run judges by the function that its options name") {
  folder at;
  auto o = options_for(at);
  o.reward.function = "regex", o.reward.pattern = "[0-9]";
  train::trainer<rl::grpo<>> t(o);
  t.train();
  for (double ratio : metric(at.path / "out", "reward/error_ratio")) CHECK(ratio == 0);
  auto bad = options_for(at, "bad");
  for (auto const& [function, pattern, message] :
       {std::tuple("regex", "", "set reward.pattern"), {"regex", "(", "cannot compile the pattern"}, {"best", "", "choose one of auto"}}) {
    bad.reward.function = function, bad.reward.pattern = pattern;
    CHECK_THROWS_WITH_AS(train::trainer<rl::grpo<>>{bad}, doctest::Contains(message), io::input_error);
  }
}
TEST_CASE("exact_match ignores blanks around an answer and tells a row without one") {
  io::data_row row;
  row.ground_truth = "42";
  CHECK(train::exact_match({row, " 42\n", {}}).value == 1);
  CHECK(train::exact_match({row, "421", {}}).value == 0);
  row.ground_truth.clear();
  CHECK(train::exact_match({row, "42", {}}).what == rl::reward_result::error);
}
