// file.hpp — files as a careful program uses them: whole reads with a limit, reads at an offset, and writes that either happened or
// did not (temporary name, fsync, rename, fsync of the folder). Every failure is an input_error that names the file and the reason.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <weft/io/error.hpp>

namespace weft::io {
using path = std::filesystem::path;

[[noreturn]] inline void refuse_file(char const* doing, path const& file) {
  int const why = errno;
  refuse("cannot {} {}: {}", doing, file.string(), std::strerror(why));
}

class descriptor {  // owns one file descriptor
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
  descriptor& operator=(descriptor&& from) noexcept {
    std::swap(fd_, from.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

inline descriptor open_read(path const& file) {
  descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) refuse_file("open", file);
  struct stat about;
  if (::fstat(fd.get(), &about) != 0) refuse_file("look at", file);
  if (!S_ISREG(about.st_mode)) refuse("cannot read {}: it is not a regular file", file.string());
  return fd;
}

inline std::uint64_t size_of(descriptor const& fd, path const& file) {
  struct stat about;
  if (::fstat(fd.get(), &about) != 0) refuse_file("look at", file);
  return static_cast<std::uint64_t>(about.st_size);
}

// Exactly `bytes` bytes from `offset`; a file that became shorter since it was opened is refused.
inline void read_at(descriptor const& fd, path const& file, std::uint64_t offset, void* to, std::size_t bytes) {
  for (auto* out = static_cast<char*>(to); bytes > 0;) {
    ssize_t const got = ::pread(fd.get(), out, bytes < (1u << 30) ? bytes : (1u << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_file("read", file);
    if (got == 0) refuse("cannot read {}: it ends at byte {}, {} bytes too early; was it cut short?", file.string(), offset, bytes);
    out += got, offset += static_cast<std::uint64_t>(got), bytes -= static_cast<std::size_t>(got);
  }
}

// Bytes of a file where they lie in the page cache, through a map. Touching a map whose file became shorter kills a program, so whoever
// walks it calls check() every few megabytes, which refuses such a file.
class file_map {
 public:
  file_map(descriptor const& fd, path const& file, std::uint64_t offset, std::size_t bytes)
      : fd_(fd)
      , file_(file)
      , end_(offset + bytes)
      , before_(offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)))
      , bytes_(before_ + bytes) {
    check();
    if (bytes == 0) return;
    void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd.get(), static_cast<off_t>(offset - before_));
    if (at == MAP_FAILED) refuse_file("map", file);
    at_ = static_cast<char const*>(at);
    ::madvise(at, bytes_, MADV_SEQUENTIAL);
  }
  file_map(file_map&&) = delete;
  ~file_map() {
    if (at_) ::munmap(const_cast<char*>(at_), bytes_);
  }
  char const* data() const { return at_ + before_; }
  void check() const {
    if (std::uint64_t const now = size_of(fd_, file_); now < end_)
      refuse("cannot read {}: it ends at byte {}, {} bytes too early; was it cut short?", file_.string(), now, end_ - now);
  }

 private:
  descriptor const& fd_;
  path const& file_;
  std::uint64_t end_;   // of the file's bytes that are asked for
  std::size_t before_;  // bytes of the page in front of them
  std::size_t bytes_;
  char const* at_ = nullptr;
};

inline void write_all(descriptor const& fd, path const& file, void const* from, std::size_t bytes) {
  for (auto* in = static_cast<char const*>(from); bytes > 0;) {
    ssize_t const put = ::write(fd.get(), in, bytes < (1u << 30) ? bytes : (1u << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse_file("write", file);
    in += put, bytes -= static_cast<std::size_t>(put);
  }
}

inline std::string read_file(path const& file, std::uint64_t most) {  // the whole file; its size is checked before memory is taken
  descriptor const fd = open_read(file);
  std::uint64_t const bytes = size_of(fd, file);
  if (bytes > most) refuse("{} has {} bytes, more than the {} that such a file may have", file.string(), bytes, most);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_at(fd, file, 0, text.data(), text.size());
  return text;
}

inline void sync(descriptor const& fd, path const& file) {
  if (::fsync(fd.get()) != 0) refuse_file("sync", file);
}

inline void sync_folder(path const& folder) {
  descriptor const fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) refuse_file("open folder", folder);
  sync(fd, folder);
}

inline void make_folder(path const& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) refuse("cannot make folder {}: {}", folder.string(), failed.message());
}

inline void rename_durably(path const& from, path const& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) refuse_file("rename to", to);
  sync_folder(to.parent_path());
}

// A file that appears whole or not at all. Without commit() the temporary file is removed and an older file stays as it was.
class atomic_file {
 public:
  explicit atomic_file(path file) : file_(std::move(file)), temporary_(file_.string() + fmt::format(".tmp{}", ::getpid())) {
    fd_ = descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd_.get() < 0) refuse_file("create", temporary_);
  }
  atomic_file(atomic_file&&) = delete;
  ~atomic_file() {
    if (!committed_) ::unlink(temporary_.c_str());
  }
  void write(void const* from, std::size_t bytes) { write_all(fd_, temporary_, from, bytes); }
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit() {
    sync(fd_, temporary_);
    rename_durably(temporary_, file_);
    committed_ = true;
  }

 private:
  path file_, temporary_;
  descriptor fd_;
  bool committed_ = false;
};

inline void write_file(path const& file, std::string_view text) {
  atomic_file out(file);
  out.write(text);
  out.commit();
}
}  // namespace weft::io
