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

#include <weft/io/json_string.hpp>
#include <weft/io/step_lines.hpp>

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
  void note(std::string_view name, std::string_view text) {  // a word among the numbers
    for (auto& n : notes_)
      if (n.name == name) return void(n.text = text);
    notes_.push_back({std::string(name), std::string(text)});
  }
  struct noted {
    std::string name, text;
  };
  std::span<noted const> notes() const { return notes_; }
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
    for (noted& n : notes_) n.text.clear();
  }

 private:
  std::vector<metric> all_;  // in the order of first use
  std::vector<noted> notes_;
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

// metrics.jsonl: a line a step, flushed.
class metrics_file {
 public:
  metrics_file(path file, std::int64_t first_step) : lines_(std::move(file), first_step) {}
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
    for (auto const& n : values.notes()) {
      if (n.text.empty()) continue;
      line_ += ',';
      append_json_string(line_, n.name);
      line_ += ':';
      append_json_string(line_, n.text);
    }
    line_ += "}\n";
    lines_.write(line_);
  }

 private:
  step_lines lines_;
  std::string line_;
};
}  // namespace weft::io
