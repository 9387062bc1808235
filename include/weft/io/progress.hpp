// progress.hpp — what a person watches while a run works, on stderr: one line that rewrites itself on a terminal; elsewhere a plain line
// now and then. Times are steady: a clock that is set neither stops nor floods it.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/core.h>

namespace weft::io {
struct progress_state {
  char const* stage = "";
  std::int64_t step = 0, steps = 0;  // steps: of the whole run
  double tokens_per_second = 0;
  double reward = 0;        // mean of the last step
  double eta_seconds = -1;  // below 0: not known yet
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
    text_.clear();
    auto out = std::back_inserter(text_);
    if (terminal_) text_ += "\r\033[K";
    fmt::format_to(out, "step {}/{} {} | {:.0f} tokens/s | reward {:.3f} | ETA ", s.step, s.steps, s.stage, s.tokens_per_second, s.reward);
    auto const left = static_cast<std::int64_t>(s.eta_seconds + 0.5);
    if (s.eta_seconds < 0) text_ += "?";
    else if (left >= 3600) fmt::format_to(out, "{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
    else fmt::format_to(out, "{}:{:02}", left / 60, left % 60);
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

  void put() {
    std::fwrite(text_.data(), 1, text_.size(), to_);
    std::fflush(to_);
  }
};
}  // namespace weft::io
