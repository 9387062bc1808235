// json.cpp — what parse_json() takes, what it refuses and where, and that writing is the inverse of reading.
#include <weft/io/json.hpp>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;

namespace {
json parse(std::string_view text, json_limits const& limits = {}) { return parse_json(text, "f", 1, limits); }
}  // namespace

TEST_CASE("json: writing what was read gives the same text") {
  for (std::string text : {R"({"b":1,"a":[true,false,null,-7,18446744073709551615,1.0,1e-06,500000.0,"x\"\\\n\u0001é"],"":{}})", "[]",
                           "\"\"", "0", "-0.0", "[[[[1]]]]"})
    CHECK(parse(text).dump() == text);
  CHECK(parse("{\"a\":[1,{}]}").dump(2) == "{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
  CHECK(parse("\xef\xbb\xbf[1]").dump() == "[1]");
  CHECK(json("\xff\xc3").dump() == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_CASE("json: refusals name file and line") {
  CHECK_REFUSED(parse("{\"a\":1,\n\"a\":2}"), "f:2: the key 'a' stands twice");
  CHECK_REFUSED(parse("[1,\n\n x]"), "f:3: not valid JSON");
  CHECK_REFUSED(parse_json("{", "data.jsonl", 17), "data.jsonl:17: not valid JSON");
  for (char const* text : {"", "[1] 2", "{\"a\"}", "[1,]", "nul", "'a'", "\"\\ud800\"", "\"\xff\"", "\"\xc0\x80\"", "\"a\nb\"", "01",
                           "1e999", "// no", "[\0]"})
    CHECK_REFUSED(parse(text), "f:");
  CHECK_REFUSED(parse("[123456789012345678901234567890]"), "does not fit 64 bits");
}

TEST_CASE("json: depth, size and number of values are capped") {
  std::string deep(1'000'000, '[');
  CHECK_REFUSED(parse(deep), "nested deeper than 64");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_REFUSED(parse(objects), "nested deeper than 64");
  CHECK(parse(std::string(64, '[') + std::string(64, ']')).as_array());
  CHECK_REFUSED(parse("[1,2,3]", {.values = 3}), "more than 3 JSON values");
  allocation::start();
  CHECK_REFUSED(parse(deep, {.bytes = 1000}), "1000000 bytes of JSON");
  CHECK(allocation::largest() < 10'000);
}

TEST_CASE("json: an object with many keys is read in less than quadratic time, and its duplicate is found") {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += fmt::format("\"k{}\":0,", i);
  CHECK(parse(text + "\"z\":0}").as_object()->size() == 200'001);
  CHECK_REFUSED(parse(text + "\"k77\":0}"), "'k77' stands twice");
}

TEST_CASE("json: members with limits") {
  json const root = parse(R"({"n":5,"real":5.0,"text":"t","none":null,"big":18446744073709551615,"yes":true})");
  CHECK(integer_of(root, "n", 1, 5, "f") == 5);
  CHECK(integer_or(root, "none", 9, 1, 5, "f") == 9);
  CHECK(number_or(root, "n", 0, 0, 10, "f") == 5.0);
  CHECK(bool_or(root, "yes", false, "f"));
  CHECK_REFUSED(integer_of(root, "n", 6, 9, "f"), "f: n is '5'; it must be an integer from 6 to 9");
  CHECK_REFUSED(integer_of(root, "real", 1, 9, "f"), "real is '5.0'");
  CHECK_REFUSED(integer_of(root, "big", 1, INT64_MAX, "f"), "big is");
  CHECK_REFUSED(integer_of(root, "gone", 1, 9, "f"), "gone is missing");
  CHECK_REFUSED(bool_or(root, "n", false, "f"), "true or false");
  CHECK_REFUSED(string_or(root, "n", "", "f"), "must be a string");
  CHECK_REFUSED(number_or(root, "text", 0, 0, 1, "f"), "must be a number");
}
