// journal.cpp — records come back, and a crash, a flipped bit or a full disk costs only what came after.
#include <weft/io/journal.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;

namespace {
bytes_view bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
std::vector<std::string> contents(path const& file, journal_end* end = nullptr) {
  std::vector<std::string> records;
  journal_end const found =
      read_journal(file, [&](bytes_view r) { records.emplace_back(reinterpret_cast<char const*>(r.data()), r.size()); });
  if (end) *end = found;
  CHECK(found.records == records.size());
  return records;
}
std::vector<std::string> const three{"first", "", std::string(1000, 'x')};
void write_three(path const& file) {
  journal to(file);
  for (auto& r : three) to.append({bytes(r)});
  to.sync();
}
}  // namespace

TEST_CASE("crc32c: known values, by instruction and by table, in one piece and in two") {
  CHECK(crc32c("123456789", 9) == 0xe3069283u);
  std::string zeros(32, '\0'), ones(32, '\xff');
  CHECK(crc32c(zeros.data(), 32) == 0x8a9136aau);  // RFC 3720, B.4
  CHECK(crc32c(ones.data(), 32) == 0x62a8ab43u);
  std::string text;
  for (int i = 0; i < 100; ++i) {
    CHECK(~detail::crc32c_plain(~0u, reinterpret_cast<unsigned char const*>(text.data()), text.size()) == crc32c(text.data(), text.size()));
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      CHECK_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), crc32c(text.data(), text.size()));
    text += static_cast<char>(i * 37);
  }
}

TEST_CASE("journal: records come back in order, over several openings") {
  io_test::temporary_folder folder;
  path const file = folder / "journal";
  CHECK(contents(file).empty());
  write_three(file);
  CHECK(contents(file) == three);
  {
    journal to(file);
    CHECK(to.opened().records == 3);
    CHECK(to.opened().torn == 0);
    to.append({bytes("a"), bytes("b"), bytes("c")});
  }
  auto more = three;
  more.push_back("abc");
  CHECK(contents(file) == more);
  journal to(file);
  to.restart();
  CHECK(contents(file).empty());
  to.append({bytes("new")});
  CHECK(contents(file) == std::vector<std::string>{"new"});
}

TEST_CASE("journal: cut at any byte, the whole records before it are there and the rest is counted") {
  io_test::temporary_folder folder;
  path const file = folder / "journal", cut = folder / "cut";
  write_three(file);
  std::string const whole = io_test::read(file);
  std::size_t const ends[]{8, 8 + 8 + 5, 8 + 8 + 5 + 8, whole.size()};
  for (std::size_t size = 0; size <= whole.size(); size += size < 40 ? 1 : 97) {
    io_test::overwrite(cut, whole.substr(0, size));
    std::size_t const records = static_cast<std::size_t>(std::upper_bound(ends, ends + 4, size) - ends);
    std::size_t const kept = records == 0 ? 0 : ends[records - 1];
    journal_end end;
    CHECK(contents(cut, &end).size() == (records == 0 ? 0 : records - 1));
    CHECK(end.bytes == kept);
    CHECK(end.torn == size - kept);
    {
      journal to(cut);
      CHECK(to.opened().torn == size - kept);
      to.append({bytes("after")});
    }
    CHECK(contents(cut).back() == "after");
    CHECK(contents(cut).size() == (records == 0 ? 1 : records));
  }
}

TEST_CASE("journal: a flipped bit anywhere ends the reading there") {
  io_test::temporary_folder folder;
  path const file = folder / "journal", hurt = folder / "hurt";
  write_three(file);
  std::string const whole = io_test::read(file);
  for (std::size_t at = 8; at < whole.size(); at += at < 40 ? 1 : 61) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 4);
    io_test::overwrite(hurt, text);
    CHECK(contents(hurt).size() == (at < 21 ? 0 : at < 29 ? 1 : 2));
  }
  io_test::overwrite(hurt, "not a journal at all");
  CHECK_REFUSED(contents(hurt), "is not a journal of weft");
  CHECK_REFUSED(journal(path(hurt)), "is not a journal of weft");
  std::string lie = whole.substr(0, 8) + std::string("\xff\xff\xff\xff\0\0\0\0", 8);
  io_test::overwrite(hurt, lie);
  allocation::start();
  CHECK(contents(hurt).empty());
  CHECK(allocation::largest() < 10'000);
}

TEST_CASE("journal: killed inside a record, what was whole is there") {
  for (int n = 1; n <= 6; ++n) {
    io_test::temporary_folder folder;
    path const file = folder / "journal";
    int const status = io_test::in_child([&] {
      ::setenv("WEFT_KILL_AT", fmt::format("journal:{}", n).c_str(), 1);
      journal to(file);
      for (int i = 0; i < 3; ++i) to.append({bytes("head"), bytes("tail")});
    });
    CHECK(io_test::was_killed(status));
    CHECK(contents(file).size() == static_cast<std::size_t>(n / 2));
  }
}

TEST_CASE("journal: on a full disk append refuses and leaves whole records") {
  io_test::temporary_folder folder;
  path const file = folder / "journal";
  int const status = io_test::in_child([&] {
    journal to(file);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit const small{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (;;) to.append({bytes("twenty bytes of text")});
  });
  CHECK(io_test::has_refused(status));
  journal_end end;
  CHECK(contents(file, &end).size() == 3);
  CHECK(end.torn == 0);
}

TEST_CASE("journal: a sample's round trip, in float and double, without allocation") {
  io_test::temporary_folder folder;
  path const file = folder / "journal";
  auto round_trip = [&]<class T>(T) {
    std::vector<T> const a{T(-0.1), T(-2)}, b{T(0), T(-0.5)}, c{T(1.5), T(0.25)};
    std::vector<weft::i32> const ids{7, 256};
    sample_view<T> const sample{
        {.draw = 12, .sample = 3, .step = 5, .finish = 16, .count = 2, .source = 77}, a.data(), b.data(), c.data(), ids.data()};
    {
      journal to(file);
      to.restart();
      allocation::start();
      for (int i = 0; i < 100; ++i) append_sample(to, sample);
      to.sync();
      CHECK(allocation::count() == 0);
    }
    std::size_t seen = 0;
    read_journal(file, [&](bytes_view payload) {
      sample_view<T> back;
      REQUIRE(read_sample(payload, back));
      CHECK((back.head.draw == 12 && back.head.sample == 3 && back.head.step == 5 && back.head.finish == 16 && back.head.source == 77));
      CHECK(std::vector<T>(back.log_probs, back.log_probs + 2) == a);
      CHECK(std::vector<T>(back.log_kept, back.log_kept + 2) == b);
      CHECK(std::vector<T>(back.entropies, back.entropies + 2) == c);
      CHECK(std::vector<weft::i32>(back.ids, back.ids + 2) == ids);
      sample_view<std::conditional_t<sizeof(T) == 4, double, float>> other;
      CHECK(!read_sample(payload, other));
      CHECK(!read_sample(payload.first(payload.size() - 1), back));
      CHECK(!read_sample(payload.first(10), back));
      ++seen;
    });
    CHECK(seen == 100);
  };
  round_trip(float());
  round_trip(double());
}
