// lock.hpp — one job to an output folder. OUT/lock holds the owner's pid and host; the kernel's lock on it ends with the process, so
// what a dead job left behind is taken over. Where the file system has no such locks, the pid decides, on the same host only.
#pragma once
#include <sys/file.h>

#include <csignal>

#include <weft/io/file.hpp>

namespace weft::io {
class folder_lock {
 public:
  explicit folder_lock(path const& folder) : file_(folder / "lock") {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    for (;;) {
      fd_ = descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
      if (fd_.get() < 0) refuse_file("lock", file_);
      if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) {
        if (still_there()) break;
        continue;  // its owner removed it between our open and our lock
      }
      if (errno == EWOULDBLOCK)
        refuse("{} is in use by the job {}; choose another folder, or end that job first", folder.string(), owner());
      check_owner(folder, host);
      break;
    }
    std::string const text = fmt::format("{} on {}\n", ::getpid(), host);
    if (::ftruncate(fd_.get(), 0) != 0) refuse_file("write", file_);
    if (::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) refuse_file("write", file_);
  }
  folder_lock(folder_lock&&) = delete;
  ~folder_lock() { ::unlink(file_.c_str()); }

 private:
  path file_;
  descriptor fd_;

  bool still_there() const {
    struct stat ours, named;
    return ::fstat(fd_.get(), &ours) == 0 && ::stat(file_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
  }
  std::string owner() const {  // "pid on host"
    char text[300] = {};
    ssize_t const got = ::pread(fd_.get(), text, sizeof text - 1, 0);
    std::string_view line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    return show(line.substr(0, line.find('\n')));
  }
  void check_owner(path const& folder, char const* host) const {
    int pid = 0;
    char other[256] = {};
    char text[300] = {};
    if (::pread(fd_.get(), text, sizeof text - 1, 0) <= 0 || std::sscanf(text, "%d on %255s", &pid, other) != 2) return;
    if (std::strcmp(host, other) == 0 && ::kill(pid, 0) != 0 && errno == ESRCH) return;
    refuse("{} is in use by the job {}; if that job is gone, remove {}", folder.string(), owner(), file_.string());
  }
};
}  // namespace weft::io
