// What a machine is asked, and how findings read: lists of processors, storage, half of a launcher's variables, JSON.
#include <doctest/doctest.h>
#include <weft/io/survey.hpp>

#include "helper.hpp"

using namespace weft::io;

TEST_CASE("survey: lists of processors as the kernel writes them") {
  CHECK(detail::numbers_of("0-3,8") == std::set<int>{0, 1, 2, 3, 8});
  CHECK(detail::numbers_of("7") == std::set<int>{7});
  CHECK(detail::numbers_of("").empty());
  CHECK(detail::numbers_of("x").empty());
  CHECK(detail::numbers_of("2-").size() <= 3);  // garbage ends it
  CHECK(detail::numbers_of("0-99999999").size() == 4096);
}
TEST_CASE("survey: storage that is there, that may not be written, that is measured") {
  io_test::temporary_folder folder;
  auto const there = storage(folder / "not" / "yet", 0);
  REQUIRE(there.size() == 1);
  CHECK(there[0].how != level::failure);
  CHECK(storage("/proc/self", 0)[0].how == level::failure);
  auto const rate = storage(folder / "", std::size_t{4} << 20);
  REQUIRE(rate.size() == 2);
  CHECK(rate[1].is.find("GB/s") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder / ""));  // nothing is left behind
}
TEST_CASE("survey: a plan larger than memory is a failure; quick checks tell only what is not well") {
  CHECK(memory_left(1e18).how == level::failure);
  CHECK(memory_left(1e18).is.find("GB available") != std::string::npos);
  io_test::temporary_folder folder;
  for (finding const& f : quick_checks(folder / "", 0)) {
    CHECK(f.how != level::ok);
    CHECK(!f.remedy.empty());
  }
}
TEST_CASE("survey: findings as JSON") {
  json const j = as_json({{level::warning, "clock", "off", "set it"}});
  CHECK(j.dump() == R"([{"level":"warning","what":"clock","is":"off","remedy":"set it"}])");
}
