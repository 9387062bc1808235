// kill_point.hpp — WEFT_KILL_AT=name:n kills the process (SIGKILL) when it passes the point of that name for the n-th time.
// This is how tests show that a run goes on after a crash at the worst moments; without the variable a point costs one look at the
// environment.
#pragma once
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace weft::io {
inline void kill_point(char const* name) {
  char const* const wanted = std::getenv("WEFT_KILL_AT");
  if (!wanted) return;
  char const* const colon = std::strchr(wanted, ':');
  static long left = colon ? std::atol(colon + 1) : 1;
  std::size_t const length = colon ? static_cast<std::size_t>(colon - wanted) : std::strlen(wanted);
  if (std::strlen(name) == length && std::strncmp(name, wanted, length) == 0 && --left == 0) std::raise(SIGKILL);
}
}  // namespace weft::io
