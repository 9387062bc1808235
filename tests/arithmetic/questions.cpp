// The arithmetic task: right answers, the pupil's slips, a split without leaks, the same for the same seed.
#include <arithmetic/questions.hpp>
#include <doctest/doctest.h>

using namespace arithmetic;

static std::string slip_of(std::int64_t a, char op, std::int64_t b) { return question{a, b, op}.slip(); }

TEST_CASE("answers and slips") {
  CHECK(question{58, 43, '+'}.answer() == 101);
  CHECK(question{42, 17, '-'}.answer() == 25);
  CHECK(question{12, 12, '*'}.answer() == 144);
  CHECK(slip_of(58, '+', 43) == "91");
  CHECK(slip_of(97, '+', 83) == "70");
  CHECK(slip_of(55, '+', 55) == "00");
  CHECK(slip_of(42, '-', 17) == "35");
  CHECK(slip_of(50, '-', 50) == "0");
  CHECK(slip_of(12, '-', 9) == "13");
  for (std::int64_t a = 0; a < 200; ++a)
    for (std::int64_t b = 0; b <= a; ++b) {                                   // without a carry or borrow a slip is the answer
      bool carry = false, borrow = false;
      for (auto x = a, y = b; x > 0; x /= 10, y /= 10) carry |= x % 10 + y % 10 > 9, borrow |= x % 10 < y % 10;
      if (!carry) CHECK(slip_of(a, '+', b) == fmt::format("{}", a + b));
      else CHECK(slip_of(a, '+', b) != fmt::format("{}", a + b));
      if (!borrow) CHECK(slip_of(a, '-', b) == fmt::format("{}", a - b));
      else CHECK(slip_of(a, '-', b) != fmt::format("{}", a - b));
    }
}

TEST_CASE("no question is in both files, in either order, and none occurs twice") {
  for (std::int64_t seed : {1, 2, 3}) {
    settings s;
    s.seed = seed;
    auto const [train, val] = make(s);
    CHECK(val.size() == 512);
    CHECK(train.size() > 11000);
    std::set<std::string> seen, held;
    for (auto const& q : val) {
      CHECK(seen.insert(q.text(s.form)).second);
      held.insert(q.text(s.form));
      if (q.op != '-') held.insert(question{q.b, q.a, q.op}.text(s.form));
    }
    for (auto const& q : train) {
      CHECK(seen.insert(q.text(s.form)).second);
      CHECK(!held.contains(q.text(s.form)));
    }
  }
}

TEST_CASE("the seed decides the split, and nothing else does") {
  settings s;
  auto const texts = [&] {
    std::string all;
    for (auto const& q : make(s).val) all += q.text(s.form);
    return all;
  };
  auto const first = texts();
  CHECK(texts() == first);
  CHECK(first.starts_with("89-16=34+80="));
  s.seed = 2;
  CHECK(texts() != first);
}

TEST_CASE("settings that cannot be met are refused") {
  auto const refused = [](auto change) {
    settings s;
    change(s);
    CHECK_THROWS_AS(make(s).train.at(0).text(s.form), weft::io::input_error);
  };
  refused([](settings& s) { s.val = 0; });
  refused([](settings& s) { s.val = 20000; });
  refused([](settings& s) { s.train = 20000; });
  refused([](settings& s) { s.kinds = {"div"}; });
  refused([](settings& s) { s.most = 5; });
  refused([](settings& s) { s.slip = 1.5; });
  refused([](settings& s) { s.form = "{c}"; });
  refused([](settings& s) { s.form = "{a"; });
}
