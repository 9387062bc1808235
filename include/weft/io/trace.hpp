// trace.hpp — when each stage ran, as Chrome's trace format: open the file in ui.perfetto.dev or chrome://tracing. One process; a row each for
// the device, the host's stages and moves; a slice a call, times in microseconds from the first.
#pragma once
#include <string>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json_string.hpp>

namespace weft::io {
class trace {
 public:
  enum row { step = 0, device, host, link };
  void add(row where, std::string_view name, double start, double end, std::int64_t step_number) {  // seconds of one clock
    if (slices_.empty() || start < origin_) origin_ = start;
    slices_.push_back({where, std::string(name), start, end - start, step_number});
  }
  std::string text() const {
    static constexpr char const* rows[] = {"step", "device", "host", "link"};
    std::string out =
        "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"weft\"}}";
    for (int r = step; r <= link; ++r)
      out += fmt::format(",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{}\"}}}}", r, rows[r]);
    for (slice const& s : slices_) {
      out += ",\n{\"ph\":\"X\",\"pid\":1,\"name\":";
      append_json_string(out, s.name);
      out += fmt::format(",\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{\"step\":{}}}}}", int(s.where), (s.start - origin_) * 1e6,
                         s.seconds * 1e6, s.step);
    }
    return out + "\n]}\n";
  }
  bool empty() const { return slices_.empty(); }

 private:
  struct slice {
    row where;
    std::string name;
    double start, seconds;
    std::int64_t step;
  };
  std::vector<slice> slices_;
  double origin_ = 0;
};
}  // namespace weft::io
