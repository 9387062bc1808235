// Rules that find the answer within a response, and hostile responses.
#include <chrono>
#include <random>

#include <doctest/doctest.h>
#include <weft/train/rule_rewards.hpp>

using namespace weft;
using train::last_boxed, train::last_hash_number, train::same_answer;

namespace {
double score(train::reward_function const& f, std::string const& text, std::string const& truth, std::string const& source = "") {
  io::data_row row;
  row.ground_truth = truth, row.data_source = source;
  auto const r = f({row, text, {}});
  return r.what == rl::reward_result::scored ? double(r.value) : -1;
}
}  // namespace

TEST_CASE("gsm8k: the last number after four hashes, near the end") {
  CHECK(last_hash_number("so 5.\n#### 1,234") == "1234");
  CHECK(last_hash_number("#### 7 and then #### -8.50 apples") == "-8.50");
  CHECK(last_hash_number("#### $1,000") == "1000");
  CHECK(last_hash_number("#### 5\n#### none") == "5");
  CHECK(last_hash_number("#### ####  5") == std::nullopt);
  CHECK(last_hash_number("####5") == std::nullopt);
  CHECK(last_hash_number("#### ,.") == std::nullopt);
  CHECK(last_hash_number("") == std::nullopt);
  CHECK(last_hash_number("#### 5" + std::string(294, ' ')) == "5");  // the last 300 characters, not bytes
  CHECK(last_hash_number("#### 5" + std::string(295, ' ')) == std::nullopt);
  std::string wide = "#### 5";
  for (int i = 0; i < 294; ++i) wide += "é";
  CHECK(last_hash_number(wide) == "5");
  CHECK(score(train::gsm8k, "it is #### 72", "72") == 1);
  CHECK(score(train::gsm8k, "it is #### 1,072", "1072") == 1);
  CHECK(score(train::gsm8k, "it is #### 1072", "Half of it is 2144/2.\n#### 1,072") == 1);
  CHECK(score(train::gsm8k, "it is 72", "72") == 0);
  CHECK(score(train::gsm8k, "#### 72.0", "72") == 0);  // as verl
  CHECK(score(train::gsm8k, "#### 72", "") == -1);
}
TEST_CASE("boxed: the last box, its braces balanced") {
  CHECK(last_boxed("\\boxed{1} and \\boxed{\\frac{1}{2}} done") == "\\frac{1}{2}");
  CHECK(last_boxed("\\boxed{\\boxed{5}}") == "5");
  CHECK(last_boxed("\\boxed{a_{b_{c}}}") == "a_{b_{c}}");
  CHECK(last_boxed("\\boxed{\\{1, 2\\}}") == "\\{1, 2\\}");
  CHECK(last_boxed("\\boxed {7}") == "7");
  CHECK(last_boxed("$\\boxed 7$.") == "7");
  CHECK(last_boxed("\\fbox{x}") == "x");
  CHECK(last_boxed("\\boxed{}") == "");
  for (char const* none : {"", "\\boxed", "\\boxed ", "\\boxed{1", "\\boxed{{1}", "\\boxed{1\\}", "boxed{1}", "\\boxedx{1}", "\\boxed\\"})
    CHECK_MESSAGE(last_boxed(none) == std::nullopt, none);
}
TEST_CASE("boxed: answers that are the same") {
  for (auto const& [a, b] : {std::pair("0.5", "\\frac{1}{2}"),
                             {"1/2", "\\dfrac12"},
                             {".5", "0.50"},
                             {"1,000", "1000"},
                             {"-1,234,567.0", "-1234567"},
                             {"x = 4", "4"},
                             {"50\\%", "50"},
                             {"\\$12.50", "12.5"},
                             {"12 \\text{ cm}", "12"},
                             {"90^\\circ", "90"},
                             {"\\sqrt3", "\\sqrt{3}"},
                             {"\\left( 1, 2 \\right)", "(1,2)"},
                             {"+3", "3"},
                             {"4.", "4"},
                             {"-\\frac{2}{4}", "-1/2"},
                             {"2/-4", "-0.5"},
                             {"\u22125", "-5"},
                             {"-0", "0"},
                             {"007", "7"},
                             {"\\tfrac{6}{3}", "2"},
                             {"\\frac1x", "\\frac{1}{x}"}})
    CHECK_MESSAGE(same_answer(a, b), a, " ", b);
  for (auto const& [a, b] : {std::pair("1", "-1"),
                             {"1,2", "12"},
                             {"1,23", "123"},
                             {"1234,567", "1234567"},
                             {"12,34,567", "1234567"},
                             {",123", "123"},
                             {"1/0", "2/0"},
                             {"0.1", "0.10000000000000000001"},
                             {"1.2.3", "123"},
                             {"--1", "1"},
                             {"1e3", "1000"},
                             {"", "0"},
                             {"x", "y"},
                             {"12345678901234567890", "12345678901234567891"},
                             {"1 000", "1001"}})
    CHECK_MESSAGE(!same_answer(a, b), a, " ", b);
  CHECK(same_answer("123456789012345678901234567890", "123456789012345678901234567890"));
  CHECK(score(train::boxed, "Thus \\boxed{1{,}5}", "\\boxed{1{,}5}") == 1);
  CHECK(score(train::boxed, "Thus \\boxed{\\frac{3}{4}}.", "So \\boxed{0.75}") == 1);
  CHECK(score(train::boxed, "Thus 0.75", "0.75") == 0);
  CHECK(score(train::boxed, "\\boxed{1}", "") == -1);
}
TEST_CASE("numbers: equal as fractions exactly when they are equal") {
  std::mt19937 random(1);
  auto const below = [&](int n) { return int(random() % unsigned(n)); };
  for (int i = 0; i < 20000; ++i) {
    int const a = below(41) - 20, b = 1 + below(12), c = below(41) - 20, d = 1 + below(12);
    auto const form = [&](int x, int y) {
      switch (below(y == 1 ? 4 : 3)) {
        case 0:
          return fmt::format("{}/{}", x, y);
        case 1:
          return fmt::format("{}\\frac{{{}}}{{{}}}", x < 0 ? "-" : "", std::abs(x), y);
        case 2:
          return fmt::format("\\frac{{{}}}{{{}}}", 3 * x, 3 * y);
        default:
          return fmt::format("{}.00", x);
      }
    };
    CHECK(same_answer(form(a, b), form(c, d)) == (a * d == c * b));
  }
}
TEST_CASE("regex: the first group of the last match, or all of it") {
  auto const answer_is = train::regex_match("(?i)answer is (-?[0-9]+)");
  CHECK(score(answer_is, "The answer is 3. No, the ANSWER IS 42.", "42") == 1);
  CHECK(score(answer_is, "The answer is 42. No, the answer is 3.", "42") == 0);
  CHECK(score(answer_is, "42", "42") == 0);
  CHECK(score(answer_is, "answer is 7", "") == 1);  // a row without an answer: that it matches
  CHECK(score(train::regex_match("[0-9]"), "1 2 3", "3") == 1);
  CHECK(score(train::regex_match("a|b(c)"), "xa", "a") == 1);  // the group took no part
  CHECK(score(train::regex_match("^yes$"), "yes", "yes") == 1);
  CHECK(score(answer_is, "\xff answer is 42", "42") == 0);  // no UTF-8
}
TEST_CASE("auto: verl's choice by data_source") {
  CHECK(score(train::by_data_source, "#### 5", "5", "openai/gsm8k") == 1);
  CHECK(score(train::by_data_source, "\\boxed{5}", "5.0", "DigitalLearningGmbH/MATH-lighteval") == 1);
  CHECK(score(train::by_data_source, "\\boxed{5}", "5.0", "aime_2024") == 1);
  CHECK(score(train::by_data_source, " 5\n", "5", "arithmetic") == 1);
}
TEST_CASE("hostile responses cost no more than time linear in their length") {
  std::string deep = "\\boxed", hashes, boxes, dollars(1 << 20, '$');
  for (int i = 0; i < 1 << 18; ++i) deep += '{', hashes += "#### ", boxes += "\\boxed{";
  std::string const digits = "\\boxed{" + std::string(1 << 20, '9') + "}", as(200000, 'a'), fractions = "\\boxed{" + [] {
    std::string s;
    for (int i = 0; i < 1 << 18; ++i) s += "\\frac12";
    return s;
  }() + "}";
  auto const evil = train::regex_match("(a+)+$"), worse = train::regex_match("(?:a|aa)+[bc]");
  auto const begun = std::chrono::steady_clock::now();
  for (std::string const& text :
       {deep, hashes, boxes, dollars, digits, fractions, std::string(1 << 20, '\0'), std::string(1 << 20, '\x80')})
    for (train::reward_function const& f : {train::reward_function(train::gsm8k), {train::boxed}, {train::exact_match}, {evil}})
      CHECK_NOTHROW(score(f, text, "7"));
  CHECK_THROWS_WITH_AS(score(evil, as + "!", "a"), doctest::Contains("match limit"), io::input_error);  // the sample's error
  CHECK_THROWS_WITH_AS(score(worse, as, "a"), doctest::Contains("match limit"), io::input_error);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(60));  // without bounds: years
}
