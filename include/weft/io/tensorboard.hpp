// tensorboard.hpp — the numbers of a run as TensorBoard reads them: FOLDER/events.out.tfevents.SECONDS.HOST. A record is TFRecord's frame (u64
// length, masked CRC32C of it, payload, masked CRC32C of that; little-endian) around a protobuf Event (tensorflow/core/util/event.proto):
//   1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary { 1 Value { 1 string tag, 2 float simple_value } }, 7 SessionLog { 1 status }
// A run that goes on opens a new file that says where: TensorBoard then forgets what older files say of later steps.
#pragma once
#include <chrono>

#include <weft/io/crc32c.hpp>
#include <weft/io/metrics.hpp>

namespace weft::io {
namespace detail {
struct protobuf {  // fields, one behind the other
  std::string bytes;

  void varint(std::uint64_t x) {
    for (; x >= 128; x >>= 7) bytes += static_cast<char>(x | 128);
    bytes += static_cast<char>(x);
  }
  void key(unsigned field, unsigned wire) { varint(field << 3 | wire); }
  template <class T> void fixed(unsigned field, T value) {  // double or float
    key(field, sizeof value == 8 ? 1 : 5);
    bytes.append(reinterpret_cast<char const*>(&value), sizeof value);
  }
  void integer(unsigned field, std::uint64_t value) { key(field, 0), varint(value); }
  void text(unsigned field, std::string_view value) { key(field, 2), varint(value.size()), bytes += value; }
};
constexpr std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
}  // namespace detail

class tensorboard_file {
 public:
  tensorboard_file(path const& folder, std::int64_t first_step) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    file_ = folder / fmt::format("events.out.tfevents.{}.{}", static_cast<std::int64_t>(now()), host);
    fd_ = descriptor(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (fd_.get() < 0) refuse_file("open", file_);
    begin(0);
    event_.text(3, "brain.Event:2");
    put();
    detail::protobuf started;
    started.integer(1, 1);  // SessionLog.START
    begin(first_step);
    event_.text(7, started.bytes);
    put();
  }
  void write(std::int64_t step, metrics const& values) {
    summary_.bytes.clear();
    for (metric const& m : values.all()) {
      if (!m.given()) continue;
      value_.bytes.clear();
      value_.text(1, m.name);
      value_.fixed(2, static_cast<float>(m.value()));
      summary_.text(1, value_.bytes);
    }
    begin(step);
    event_.text(5, summary_.bytes);
    put();
  }

 private:
  path file_;
  descriptor fd_;
  detail::protobuf event_, summary_, value_;
  std::string frame_;

  static double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
  void begin(std::int64_t step) {
    event_.bytes.clear();
    event_.fixed(1, now());
    event_.integer(2, static_cast<std::uint64_t>(step));
  }
  void put() {
    std::uint64_t const length = event_.bytes.size();
    std::uint32_t const of_length = detail::masked(crc32c(&length, sizeof length)),
                        of_event = detail::masked(crc32c(event_.bytes.data(), event_.bytes.size()));
    frame_.assign(reinterpret_cast<char const*>(&length), sizeof length);
    frame_.append(reinterpret_cast<char const*>(&of_length), sizeof of_length);
    frame_ += event_.bytes;
    frame_.append(reinterpret_cast<char const*>(&of_event), sizeof of_event);
    write_all(fd_, file_, frame_.data(), frame_.size());
  }
};
}  // namespace weft::io
