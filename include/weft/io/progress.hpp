// progress.hpp — what a person watches while a run works, on stderr: one line that rewrites itself on a terminal; elsewhere a plain line
// now and then. Times are steady: a clock that is set neither stops nor floods it.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace weft::io {
struct progress_state {
  char const* stage = "";
  std::int64_t step = 0, steps = 0;  // steps: of the whole run
  std::int64_t done = 0, total = 0;  // sequences of this stage; total 0: the stage has none
  double tokens_per_second = 0;
  double reward = 0;                       // mean of the last step
  double eta_seconds = -1;                 // below 0: not known yet
  char const *waits_for = "", *knob = "";  // what the last step waited for most, and what moves it
};

class progress {
 public:
  explicit progress(std::FILE* to = stderr, double plain_seconds = 10)
      : to_(to), terminal_(::isatty(::fileno(to)) == 1), every_(terminal_ ? 0.1 : plain_seconds) {}
  progress(progress&&) = delete;
  ~progress() { clear(); }

  void show(progress_state const& s) {
    auto const now = std::chrono::steady_clock::now();
    if (shown_ && std::chrono::duration<double>(now - last_).count() < every_) return;
    last_ = now, shown_ = true;
    text_ = terminal_ ? "\r\033[K" : "";
    print("step %lld/%lld %s", static_cast<long long>(s.step), static_cast<long long>(s.steps), s.stage);
    if (s.total) print(" %lld/%lld", static_cast<long long>(s.done), static_cast<long long>(s.total));
    print(" | %.0f tokens/s | reward %.3f | ETA ", s.tokens_per_second, s.reward);
    auto const left = static_cast<long long>(s.eta_seconds + 0.5);
    if (s.eta_seconds < 0) text_ += "?";
    else if (left >= 3600) print("%lld:%02lld:%02lld", left / 3600, left / 60 % 60, left % 60);
    else print("%lld:%02lld", left / 60, left % 60);
    if (*s.waits_for) print(" | %s: %s", s.waits_for, s.knob);
    if (!terminal_) text_ += '\n';
    open_ = terminal_;
    put();
  }
  void say(std::string_view line) {  // a line that stays
    clear();
    text_.assign(line);
    text_ += '\n';
    put();
  }
  void clear() {  // takes the rewritten line away, before others write to the terminal
    if (!open_) return;
    open_ = false;
    text_ = "\r\033[K";
    put();
  }

 private:
  std::FILE* to_;
  bool terminal_, open_ = false, shown_ = false;
  double every_;
  std::chrono::steady_clock::time_point last_;
  std::string text_;

  template <class... A> void print(char const* form, A... values) {
    char part[200];
    int const length = std::snprintf(part, sizeof part, form, values...);
    text_.append(part, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof part) - 1)));
  }
  void put() {
    std::fwrite(text_.data(), 1, text_.size(), to_);
    std::fflush(to_);
  }
};
}  // namespace weft::io
