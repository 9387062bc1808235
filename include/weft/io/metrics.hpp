// metrics.hpp — numbers of a step. The only way to emit one is (numerator, denominator, reduction): parts from micro-batches, ranks or
// samples then add up to the right mean, whoever adds them in whatever order of the same parts.
// They go out as one JSON object a line, flushed, {"step":N,"name":value,...} under verl's names, and as verl's console line.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json_string.hpp>

namespace weft::io {
enum class reduction {
  mean,
  sum,
  max,
  min
};  // mean: sum of numerators over sum of denominators; the others reduce numerator / denominator

struct metric {
  std::string name;
  double numerator = 0, denominator = 0;  // denominator 0: nothing was counted this step, and the metric is left out
  reduction how = reduction::mean;
  bool given() const { return denominator != 0; }
  double value() const { return numerator / denominator; }
};

class metrics {
 public:
  void add(std::string_view name, double numerator, double denominator, reduction how) {
    if (denominator == 0) return;
    metric& m = at(name, how);
    double const value = numerator / denominator;
    if (how == reduction::mean) m.numerator += numerator, m.denominator += denominator;
    else if (!m.given()) m.numerator = value, m.denominator = 1;
    else if (how == reduction::sum) m.numerator += value;
    else if (how == reduction::max) m.numerator = std::fmax(m.numerator, value);
    else m.numerator = std::fmin(m.numerator, value);
  }
  void merge(std::span<metric const> others) {
    for (metric const& m : others) add(m.name, m.numerator, m.denominator, m.how);
  }
  metric const* find(std::string_view name) const {
    for (metric const& m : all_)
      if (m.name == name && m.given()) return &m;
    return nullptr;
  }
  std::span<metric const> all() const { return all_; }
  void clear() {  // for the next step; the names stay, so that nothing is allocated
    for (metric& m : all_) m.numerator = m.denominator = 0;
  }

 private:
  std::vector<metric> all_;  // in the order of first use
  metric& at(std::string_view name, reduction how) {
    for (metric& m : all_)
      if (m.name == name) {
        if (m.how != how) refuse("metric {} is emitted with two reductions", name);
        return m;
      }
    all_.push_back({std::string(name), 0, 0, how});
    return all_.back();
  }
};

// std::to_chars does not allocate; without `digits` it gives the shortest text that reads back as the same number.
template <class T, class... Form> void append_number(std::string& out, T value, Form... digits) {
  char text[40];
  out.append(text, std::to_chars(text, text + sizeof text, value, digits...).ptr);
}

// verl's console line: step:N - name:value - ...
inline void console_line(std::string& out, std::int64_t step, metrics const& values) {
  out.clear();
  out += "step:";
  append_number(out, step);
  for (metric const& m : values.all()) {
    if (!m.given()) continue;
    out += " - ";
    for (char c : m.name) out += c >= 0x20 && c < 0x7f ? c : '?';  // a data source is part of some names
    out += ':';
    append_number(out, m.value(), std::chars_format::general, 6);
  }
}

// Appends a line a step. A run that resumes at a step cuts the lines from that step on, so that every step stands once.
class metrics_file {
 public:
  metrics_file(path file, std::int64_t first_step) : file_(std::move(file)) {
    fd_ = descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd_.get() < 0) refuse_file("open", file_);
    std::uint64_t const kept = bytes_before(first_step);
    if (::ftruncate(fd_.get(), static_cast<off_t>(kept)) != 0 || ::lseek(fd_.get(), 0, SEEK_END) < 0) refuse_file("cut", file_);
  }
  void write(std::int64_t step, metrics const& values) {
    line_ = "{\"step\":";
    append_number(line_, step);
    for (metric const& m : values.all()) {
      if (!m.given()) continue;
      double const value = m.value();
      line_ += ',';
      append_json_string(line_, m.name);
      line_ += ':';
      if (std::isfinite(value)) append_number(line_, value);
      else line_ += "null";
    }
    line_ += "}\n";
    write_all(fd_, file_, line_.data(), line_.size());
  }

 private:
  path file_;
  descriptor fd_;
  std::string line_;

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
