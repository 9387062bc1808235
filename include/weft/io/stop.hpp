// stop.hpp — a run that is asked to end. Ctrl-C (SIGINT) once: finish the step and save; twice: end at once. SIGTERM: save and end, without
// finishing what can be done again. The handlers only take a note; whoever works looks at asked() where it can stop.
//   io::stop_on_signals guard;      in main, while the run lives; exit code 128 + signal afterwards
#pragma once
#include <atomic>
#include <csignal>
#include <cstring>
#include <initializer_list>

#include <unistd.h>

namespace weft::io {
inline std::atomic<int> stop_signal{0};  // 0, SIGINT or SIGTERM

inline int asked_to_stop() { return stop_signal.load(std::memory_order_relaxed); }

class stop_on_signals {
 public:
  stop_on_signals() {
    stop_signal = 0;
    struct sigaction how = {};
    how.sa_handler = &take_note;
    how.sa_flags = SA_RESTART;
    ::sigaction(SIGINT, &how, &before_[0]);
    ::sigaction(SIGTERM, &how, &before_[1]);
  }
  stop_on_signals(stop_on_signals&&) = delete;
  ~stop_on_signals() {
    ::sigaction(SIGINT, &before_[0], nullptr);
    ::sigaction(SIGTERM, &before_[1], nullptr);
  }

 private:
  struct sigaction before_[2] = {};

  static void say(char const* text) { [[maybe_unused]] auto const n = ::write(2, text, std::strlen(text)); }
  static void take_note(int signal) {
    if (signal == SIGINT && stop_signal == SIGINT) {  // the second one
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    }
    if (stop_signal != SIGTERM) stop_signal = signal;
    if (signal == SIGINT) say("\nfinishing this step, then saving; Ctrl-C again ends at once\n");
  }
};
}  // namespace weft::io
