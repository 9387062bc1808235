// report.hpp — report.html: one file, without network, that shows one run or several side by side: curves, times, the stage graph, samples,
// configuration. What it reads of a run's folder: metrics.jsonl, and where they are there samples.jsonl, graph.json, run.json, config.yaml.
// A long run is thinned to `most_steps` lines; samples to as many steps. A last line that is torn (the run is still writing) is left out.
#pragma once
#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json.hpp>
#include <weft/io/report_page.hpp>

namespace weft::io {
namespace detail {
inline constexpr std::uint64_t most_report_bytes = std::uint64_t{1} << 31;

inline std::vector<json> read_lines(path const& file) {  // objects with a step, in order
  std::vector<json> all;
  if (!std::filesystem::exists(file)) return all;
  std::string const text = read_file(file, most_report_bytes);
  std::size_t line = 1;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++line)
    all.push_back(parse_json(std::string_view(text).substr(begin, end - begin), file.string(), line));
  return all;
}
inline json read_json_if(path const& file) {
  return std::filesystem::exists(file) ? parse_json(read_file(file, 64 << 20), file.string()) : json{};
}
inline double short_number(double x) {  // six digits are enough for a curve
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return std::strtod(text, nullptr);
}
inline json run_as_json(path const& folder, std::string const& name, std::size_t most_steps) {
  path const file = folder / "metrics.jsonl";
  if (!std::filesystem::exists(file)) refuse("{}: there is no metrics.jsonl; is this the folder of a run?", folder.string());
  std::vector<json> const lines = read_lines(file);
  if (lines.empty()) refuse("{}: it has no step yet", file.string());
  std::size_t const every = (lines.size() + most_steps - 1) / most_steps;

  json::array names, rows;
  std::unordered_map<std::string, std::size_t> column;
  for (json const& line : lines)
    if (auto* const members = line.as_object())
      for (auto const& [key, value] : *members)
        if (column.emplace(key, names.size()).second) names.push_back(key);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i % every && i + 1 < lines.size()) continue;
    json::array row(names.size());
    if (auto* const members = lines[i].as_object())
      for (auto const& [key, value] : *members)
        row[column[key]] = value.is_number() && !value.is_integer() ? json(short_number(value.to_double())) : value;
    rows.push_back(std::move(row));
  }

  std::vector<json> all_samples = read_lines(folder / "samples.jsonl");
  std::vector<std::int64_t> steps;
  auto const step_of = [](json const& s) { return s.find("step") && s.find("step")->is_integer() ? s.find("step")->to_int() : 0; };
  for (json const& s : all_samples)
    if (steps.empty() || steps.back() != step_of(s)) steps.push_back(step_of(s));
  std::size_t const each = (steps.size() + most_steps / 10 - 1) / std::max<std::size_t>(1, most_steps / 10);
  json::array samples;
  for (json& s : all_samples) {
    auto const at = std::size_t(std::lower_bound(steps.begin(), steps.end(), step_of(s)) - steps.begin());
    if (at % std::max<std::size_t>(1, each) == 0 || at + 1 == steps.size()) samples.push_back(std::move(s));
  }
  path const config = folder / "config.yaml";
  return json::object{{"name", name},
                      {"every", std::int64_t(every)},
                      {"names", std::move(names)},
                      {"rows", std::move(rows)},
                      {"samples", std::move(samples)},
                      {"graph", read_json_if(folder / "graph.json")},
                      {"info", read_json_if(folder / "run.json")},
                      {"config", std::filesystem::exists(config) ? read_file(config, 1 << 20) : std::string()}};
}
}  // namespace detail

// Errors: a folder without metrics.jsonl, or with a line that is not JSON.
inline std::string report_html(std::span<path const> folders, std::size_t most_steps = 1500) {
  json::array runs;
  for (path const& folder : folders) {
    std::string name = folder.lexically_normal().string();
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    runs.push_back(detail::run_as_json(folder, name, most_steps));
  }
  std::string const data = json(json::object{{"runs", std::move(runs)}}).dump();
  std::string page = report_page, safe;
  safe.reserve(data.size());
  for (char c : data)
    if (c == '<') safe += "\\u003c";  // nothing in a sample ends the script element
    else safe += c;
  std::string_view const mark = "@DATA@";
  page.replace(page.find(mark), mark.size(), safe);
  return page;
}
}  // namespace weft::io
