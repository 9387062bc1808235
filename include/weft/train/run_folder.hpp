// run_folder.hpp — what a run leaves for people: numbers (metrics.jsonl, TensorBoard), samples, the stage graph with its times, a trace on
// request, and report.html made from them.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>

#include <weft/io/metrics.hpp>
#include <weft/io/tensorboard.hpp>
#include <weft/io/trace.hpp>
#include <weft/train/stage_graph.hpp>

namespace weft::train {
struct shown_sample {
  std::int64_t row, sample, tokens;
  std::string_view prompt, response, truth, finish;
  double reward;  // NaN: it has none
};

class run_folder {
 public:
  // first_step: what stands in the files from there on is cut. profiled: steps that the trace shows.
  run_folder(io::path out, std::int64_t first_step, std::vector<std::int64_t> profiled)
      : out_(std::move(out))
      , metrics_(out_ / "metrics.jsonl", first_step)
      , samples_(out_ / "samples.jsonl", first_step)
      , events_(out_, first_step)
      , profiled_(std::move(profiled)) {}

  void draw(stage_graph graph, size_t nodes) {
    graph_ = std::move(graph), seconds_.assign(nodes, 0), rows_.assign(nodes, io::trace::device), names_.assign(nodes, "");
    for (stage_node const& n : graph_.nodes) {
      names_[n.node] = n.name;
      rows_[n.node] = n.kind == "move" ? io::trace::link : n.on_host ? io::trace::host : io::trace::device;
    }
  }
  bool profiles(std::int64_t step) const { return std::find(profiled_.begin(), profiled_.end(), step) != profiled_.end(); }
  void stage(std::int64_t step, size_t node, double start, double end) {
    if (profiles(step)) trace_.add(rows_[node], names_[node], start, end, step);
  }
  void took(size_t node, double seconds) { seconds_[node] += seconds; }
  void stepped(std::int64_t step, double start, double end) {
    ++steps_;
    if (profiles(step)) trace_.add(io::trace::step, fmt::format("step {}", step), start, end, step);
  }
  void add(std::int64_t step, shown_sample const& s) {
    lines_ += fmt::format("{{\"step\":{},\"row\":{},\"sample\":{},\"tokens\":{}", step, s.row, s.sample, s.tokens);
    auto const text = [&](char const* key, std::string_view value) {
      lines_ += key;
      io::append_json_string(lines_, value);
    };
    lines_ += ",\"reward\":";
    if (std::isfinite(s.reward)) io::append_number(lines_, s.reward);
    else lines_ += "null";
    text(",\"finish\":", s.finish), text(",\"prompt\":", s.prompt), text(",\"response\":", s.response), text(",\"truth\":", s.truth);
    lines_ += "}\n";
  }
  void write(std::int64_t step, io::metrics const& values) {
    metrics_.write(step, values);
    events_.write(step, values);
    samples_.write(lines_);
    lines_.clear();
  }
  void finish();  // graph.json, trace.json, report.html: whole files, written anew

 private:
  io::path out_;
  io::metrics_file metrics_;
  io::step_lines samples_;
  io::tensorboard_file events_;
  std::vector<std::int64_t> profiled_;
  io::trace trace_;
  stage_graph graph_;
  std::vector<double> seconds_;  // by node, of all steps of this process
  std::vector<io::trace::row> rows_;
  std::vector<std::string> names_;
  std::int64_t steps_ = 0;
  std::string lines_;  // samples of this step
};
}  // namespace weft::train
