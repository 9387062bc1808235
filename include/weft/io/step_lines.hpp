// step_lines.hpp — a file of JSON objects, one a line, that begin with {"step":N in order of N. A run that resumes at a step cuts the lines from
// that step on, so that every step stands once.
#pragma once
#include <cstdio>

#include <weft/io/file.hpp>

namespace weft::io {
class step_lines {
 public:
  step_lines(path file, std::int64_t first_step) : file_(std::move(file)) {
    fd_ = descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd_.get() < 0) refuse_file("open", file_);
    std::uint64_t const kept = bytes_before(first_step);
    if (::ftruncate(fd_.get(), static_cast<off_t>(kept)) != 0 || ::lseek(fd_.get(), 0, SEEK_END) < 0) refuse_file("cut", file_);
  }
  void write(std::string_view lines) { write_all(fd_, file_, lines.data(), lines.size()); }  // whole lines, each with its end

 private:
  path file_;
  descriptor fd_;

  std::uint64_t bytes_before(std::int64_t first_step) const {
    std::string const text = read_file(file_, std::uint64_t{1} << 32);
    std::size_t kept = 0;
    for (std::size_t end; (end = text.find('\n', kept)) != text.npos; kept = end + 1) {
      long long step = 0;
      if (std::sscanf(text.c_str() + kept, "{\"step\":%lld", &step) != 1 || step >= first_step) break;
    }
    return kept;
  }
};
}  // namespace weft::io
