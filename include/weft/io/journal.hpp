// journal.hpp — an append-only file of records, each with its length and checksum. Finished samples are written here before they count.
//   file: "weftjrn1", then records: u32 bytes of payload, u32 crc32c of (those four bytes, payload), payload
// A crash can leave a torn record at the end. The reader stops at the first record that is not whole; opening for append cuts the file
// there and says how many bytes went. Nothing is allocated by append(). A write that fails cuts the file back to the last whole record.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <weft/element.hpp>
#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/io/kill_point.hpp>

namespace weft::io {
using bytes_view = std::span<std::byte const>;

inline constexpr std::uint32_t most_record_bytes = 64u << 20;

struct journal_end {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // of the file's good part
  std::uint64_t torn = 0;   // bytes after it
};

// Calls each(payload) for every whole record; the payload is aligned to 8 bytes and lives until the next call. A missing or empty file
// has none.
template <class F> journal_end read_journal(path const& file, F const& each) {
  static constexpr char magic[9] = "weftjrn1";
  journal_end end;
  if (!std::filesystem::exists(file)) return end;
  descriptor const fd = open_read(file);
  std::uint64_t const size = size_of(fd, file);
  std::array<char, 8> begin{};
  read_at(fd, file, 0, begin.data(), static_cast<std::size_t>(std::min<std::uint64_t>(8, size)));
  if (size >= 8 && std::memcmp(begin.data(), magic, 8) != 0) refuse("{} is not a journal of weft; move it away", file.string());
  end.bytes = size < 8 ? 0 : 8;
  std::vector<std::uint64_t> payload;
  while (size - end.bytes >= 8 && end.bytes != 0) {
    std::array<std::uint32_t, 2> head;  // bytes, crc
    read_at(fd, file, end.bytes, head.data(), 8);
    if (head[0] > most_record_bytes || head[0] > size - end.bytes - 8) break;
    payload.resize((head[0] + std::size_t{7}) / 8);
    read_at(fd, file, end.bytes + 8, payload.data(), head[0]);
    if (crc32c(payload.data(), head[0], crc32c(&head[0], 4)) != head[1]) break;
    each(std::as_bytes(std::span(payload)).first(head[0]));
    ++end.records;
    end.bytes += 8 + head[0];
  }
  end.torn = size - end.bytes;
  return end;
}

class journal {
 public:
  // Opens for append, makes the file if it is missing, and cuts what is torn; opened() tells what was found.
  explicit journal(path file) : file_(std::move(file)), found_(read_journal(file_, [](bytes_view) {})), end_(found_.bytes) {
    bool const fresh = !std::filesystem::exists(file_);
    fd_ = descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd_.get() < 0) refuse_file("open", file_);
    cut();
    if (end_ == 0) restart();
    if (fresh) sync_folder(file_.parent_path());
  }
  journal_end const& opened() const { return found_; }

  // One record made of parts; on disk after the next sync().
  void append(std::initializer_list<bytes_view> parts) {
    std::uint64_t bytes = 0;
    for (auto part : parts) bytes += part.size();
    if (bytes > most_record_bytes) refuse("{}: a record of {} bytes is more than {}", file_.string(), bytes, most_record_bytes);
    std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(bytes), 0};
    head[1] = crc32c(&head[0], 4);
    for (auto part : parts) head[1] = crc32c(part.data(), part.size(), head[1]);
    try {
      write(head.data(), sizeof head);
      for (auto part : parts) {
        write(part.data(), part.size());
        kill_point("journal");
      }
    } catch (input_error const&) {
      cut();
      throw;
    }
    end_ += sizeof head + bytes;
  }
  void sync() {
    if (::fdatasync(fd_.get()) != 0) refuse_file("sync", file_);
  }
  void restart() {  // forgets every record: a checkpoint holds what they led to
    end_ = 0;
    cut();
    write("weftjrn1", 8);
    end_ = 8;
    sync();
  }
  std::uint64_t bytes() const { return end_; }

 private:
  path file_;
  journal_end found_;
  std::uint64_t end_;  // behind the last whole record
  descriptor fd_;

  void cut() {
    if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0 || ::lseek(fd_.get(), static_cast<off_t>(end_), SEEK_SET) < 0)
      refuse_file("cut", file_);
  }
  void write(void const* from, std::size_t bytes) { write_all(fd_, file_, from, bytes); }
};

// A finished sample as a record: this head, log_probs, log_kept and entropies [count] each, then ids [count].
struct sample_head {
  std::uint64_t draw = 0;    // draw number of its prompt
  i32 sample = 0;            // which of the prompt's samples
  i32 step = 0;              // version of the weights that it was drawn with
  i32 finish = 0;            // rollout::finish
  i32 count = 0;             // tokens
  std::uint32_t source = 0;  // checksum of what it was drawn from: weights, prompts, settings
  i32 element_bytes = 4;     // of log_probs, log_kept and entropies: 4 or 8
};
template <class T> struct sample_view {
  sample_head head;
  T const *log_probs = nullptr, *log_kept = nullptr, *entropies = nullptr;  // [head.count]
  i32 const* ids = nullptr;                                                 // [head.count]
};

template <class T> void append_sample(journal& to, sample_view<T> sample) {
  sample.head.element_bytes = sizeof(T);
  auto const n = static_cast<std::size_t>(sample.head.count);
  auto bytes = [](auto const* from, std::size_t count) { return std::as_bytes(std::span(from, count)); };
  to.append(
      {bytes(&sample.head, 1), bytes(sample.log_probs, n), bytes(sample.log_kept, n), bytes(sample.entropies, n), bytes(sample.ids, n)});
}
// False: the payload is no sample with elements of type T. The view borrows the payload.
template <class T> bool read_sample(bytes_view payload, sample_view<T>& sample) {
  if (payload.size() < sizeof(sample_head)) return false;
  std::memcpy(&sample.head, payload.data(), sizeof(sample_head));
  auto const n = static_cast<std::size_t>(sample.head.count);
  if (sample.head.count < 0 || sample.head.element_bytes != sizeof(T) ||
      payload.size() != sizeof(sample_head) + n * (3 * sizeof(T) + sizeof(i32)))
    return false;
  sample.log_probs = reinterpret_cast<T const*>(payload.data() + sizeof(sample_head));
  sample.log_kept = sample.log_probs + n;
  sample.entropies = sample.log_kept + n;
  sample.ids = reinterpret_cast<i32 const*>(sample.entropies + n);
  return true;
}
static_assert(sizeof(sample_head) % 8 == 0 && std::is_trivially_copyable_v<sample_head>);
}  // namespace weft::io
