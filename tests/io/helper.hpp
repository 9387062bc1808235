// helper.hpp — a folder that goes away, the message of a refusal, and a child process that is killed or limited.
#pragma once
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <weft/io/file.hpp>

namespace io_test {
namespace io = weft::io;

struct temporary_folder {
  io::path path;
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-io-XXXXXX").string();
    if (!::mkdtemp(name.data())) io::refuse_file("make", name);
    path = name;
  }
  temporary_folder(temporary_folder&&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path); }
  io::path operator/(std::string const& name) const { return path / name; }
  std::size_t entries() const {
    std::size_t n = 0;
    for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(path)) ++n;
    return n;
  }
};

template <class F> std::string refusal(F const& f) {  // the message; empty: f() went through
  try {
    f();
  } catch (io::input_error const& e) { return e.what(); }
  return {};
}
inline bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

// The status of a child that runs f and exits with 0, with 3 after a refusal.
template <class F> int in_child(F const& f) {
  pid_t const child = ::fork();
  if (child == 0) ::_exit(refusal(f).empty() ? 0 : 3);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}
inline bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
inline bool has_refused(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 3; }

inline void overwrite(io::path const& file, std::string const& text) {
  std::filesystem::remove(file);
  io::write_file(file, text);
}
inline std::string read(io::path const& file) { return io::read_file(file, std::uint64_t{1} << 30); }
}  // namespace io_test

#define CHECK_REFUSED(expression, part)                                        \
  do {                                                                         \
    std::string const message = io_test::refusal([&] { (void)(expression); }); \
    CHECK_MESSAGE(io_test::has(message, part), "refusal: ", message);          \
    CHECK(message.find('\n') == std::string::npos);                            \
  } while (false)
