// file.cpp — writes that happened or did not, reads with limits, and one job to a folder.
#include <weft/io/file.hpp>

#include <sys/resource.h>

#include <csignal>

#include <weft/io/lock.hpp>
#include <weft/io/utf8.hpp>

#include "helper.hpp"

using namespace weft::io;

TEST_CASE("file: an atomic write replaces the file at commit and not before") {
  io_test::temporary_folder folder;
  path const file = folder / "f";
  write_file(file, "old");
  {
    atomic_file out(file);
    out.write("new");
    CHECK(io_test::read(file) == "old");
  }
  CHECK(io_test::read(file) == "old");
  CHECK(folder.entries() == 1);
  write_file(file, "new");
  CHECK(io_test::read(file) == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: a full disk keeps the old file and leaves no temporary one") {
  io_test::temporary_folder folder;
  write_file(folder / "f", "old");
  int const status = io_test::in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit const small{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    write_file(folder / "f", std::string(5000, 'x'));
  });
  CHECK(io_test::has_refused(status));
  CHECK(io_test::read(folder / "f") == "old");
  CHECK(folder.entries() == 1);
  descriptor const full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK_REFUSED(write_all(full, "/dev/full", "x", 1), "cannot write /dev/full: No space left on device");
}

TEST_CASE("file: what cannot be read or made is named, with the reason") {
  io_test::temporary_folder folder;
  write_file(folder / "f", "12345");
  CHECK_REFUSED(read_file(folder / "gone", 10), "cannot open");
  CHECK_REFUSED(read_file(folder.path, 10), "not a regular file");
  CHECK_REFUSED(read_file("/dev/null", 10), "not a regular file");
  CHECK_REFUSED(read_file(folder / "f", 4), "has 5 bytes, more than the 4");
  CHECK_REFUSED(write_file(folder / "gone" / "f", "x"), "No such file or directory");
  CHECK_REFUSED(make_folder(folder / "f" / "g"), "cannot make folder");
  CHECK(show("a\x1b[31m\n\xff") == "'a\\x1b[31m\\x0a\\xff'");
  CHECK(show(std::string(500, 'x')).size() == 125);
}

TEST_CASE("lock: a second job is refused with the first one's pid, a dead job's lock is taken over") {
  io_test::temporary_folder folder;
  {
    folder_lock const first(folder.path);
    CHECK(io_test::has(io_test::read(folder / "lock"), fmt::format("{} on ", ::getpid())));
    CHECK_REFUSED(folder_lock(folder.path), fmt::format("is in use by the job '{} on ", ::getpid()));
    CHECK_REFUSED(folder_lock(folder.path), "or end that job first");
    CHECK(io_test::has_refused(io_test::in_child([&] { folder_lock const second(folder.path); })));
    CHECK(folder.entries() == 1);
  }
  CHECK(folder.entries() == 0);
  int const status = io_test::in_child([&] {
    folder_lock const lost(folder.path);
    std::raise(SIGKILL);
  });
  CHECK(io_test::was_killed(status));
  CHECK(folder.entries() == 1);
  folder_lock const next(folder.path);
  CHECK(io_test::has(io_test::read(folder / "lock"), fmt::format("{} on ", ::getpid())));
}

TEST_CASE("utf8: every character and nothing else") {
  auto encode = [](unsigned c) {
    if (c < 0x80) return std::string{char(c)};
    if (c < 0x800) return std::string{char(0xc0 | c >> 6), char(0x80 | (c & 63))};
    if (c < 0x10000) return std::string{char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
    return std::string{char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  };
  std::size_t wrong = 0;
  for (unsigned c = 0; c < 0x120000; ++c) {
    bool const valid = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    std::string const s = encode(c);
    wrong += utf8_length(s) != (valid ? s.size() : 0);
    if (valid && s.size() > 1) wrong += utf8_length(s.substr(0, s.size() - 1)) != 0;
  }
  CHECK(wrong == 0);
  for (char const* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xff"})
    CHECK(utf8_length(bad) == 0);
  CHECK(is_utf8("a\xc3\xa9"));
  CHECK(!is_utf8("a\xc3"));
}
