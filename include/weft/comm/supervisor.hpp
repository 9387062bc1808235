// comm/supervisor.hpp — `--nproc N`: one machine, N processes, torchrun's variables. This process becomes their parent: it hands SIGINT and
// SIGTERM on, and when one of them fails it ends the others and leaves with the code of the first that failed.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/io/input_error.hpp>
#include <weft/io/stop.hpp>

namespace weft::comm {
namespace detail {
// This port and the next are free now; rank 0 answers at the second, as under torchrun.
inline int free_port() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    int port = 0;
    bool both = true;
    int fds[2] = {-1, -1};
    for (int i = 0; i < 2; ++i) {
      fds[i] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in a = {};
      a.sin_family = AF_INET;
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      a.sin_port = htons(static_cast<std::uint16_t>(i == 0 ? 0 : port + 1));
      socklen_t size = sizeof a;
      both = both && fds[i] >= 0 && port < 65535 && ::bind(fds[i], reinterpret_cast<sockaddr*>(&a), size) == 0 &&
             ::getsockname(fds[i], reinterpret_cast<sockaddr*>(&a), &size) == 0;
      if (i == 0) port = ntohs(a.sin_port);
    }
    for (int fd : fds)
      if (fd >= 0) ::close(fd);
    if (both) return port;
  }
  throw io::input_error("no two free ports in a row on this machine");
}
}  // namespace detail

// Empty in each of the N ranks, which go on from here; in the parent, the exit code, once all have ended. Call before threads exist.
inline std::optional<int> supervise(std::int64_t n) {
  if (n < 1 || n > 4096) throw io::input_error("nproc=" + std::to_string(n) + ": a number from 1 to 4096 is needed");
  for (char const* name : {"RANK", "WORLD_SIZE"})
    if (std::getenv(name) != nullptr)
      throw io::input_error(std::string("--nproc starts ranks, but ") + name + " is set already: use one launcher, not two");
  std::string const port = std::to_string(detail::free_port());
  io::stop_on_signals const guard;
  std::fflush(nullptr);
  pid_t const parent = ::getpid();
  std::vector<pid_t> ranks;
  for (std::int64_t r = 0; r < n; ++r) {
    pid_t const child = ::fork();
    if (child < 0) {
      for (pid_t p : ranks) ::kill(p, SIGKILL);
      throw io::input_error("no process for rank " + std::to_string(r) + " of " + std::to_string(n));
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed parent leaves no ranks behind
      if (::getppid() != parent) std::_Exit(1);
      std::string const rank = std::to_string(r), size = std::to_string(n);
      for (auto const& [name, value] : {std::pair<char const*, std::string>{"RANK", rank},
                                        {"WORLD_SIZE", size},
                                        {"LOCAL_RANK", rank},
                                        {"LOCAL_WORLD_SIZE", size},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", port}})
        ::setenv(name, value.c_str(), 1);
      return std::nullopt;
    }
    ranks.push_back(child);
  }
  auto const now = [] { return std::chrono::steady_clock::now(); };
  auto const grace = std::chrono::seconds(10);  // from the first failure to SIGKILL
  int code = 0, passed_on = 0;
  std::optional<std::chrono::steady_clock::time_point> failed;
  for (size_t left = ranks.size(); left > 0;) {
    int status = 0;
    pid_t const ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      for (size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r] != ended) continue;
        ranks[r] = 0, --left;
        int const how = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (how == 0 || failed) continue;
        code = how, failed = now();
        if (passed_on == 0)
          std::fprintf(stderr, "rank %zu of %zu ended with code %d%s\n", r, ranks.size(), how, left > 0 ? "; ending the others" : "");
        for (pid_t p : ranks)
          if (p > 0 && passed_on == 0) ::kill(p, SIGTERM);
      }
      continue;
    }
    if (int const s = io::asked_to_stop(); s != 0 && s != passed_on) {
      passed_on = s;
      for (pid_t p : ranks)
        if (p > 0) ::kill(p, s);
    }
    if (failed && now() - *failed > grace)
      for (pid_t p : ranks)
        if (p > 0) ::kill(p, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return code;
}
}  // namespace weft::comm
