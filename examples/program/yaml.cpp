#include <program/yaml.hpp>

#include <weft/io/error.hpp>

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <iterator>
#include <set>

namespace program {
namespace {
struct reader {
  std::string const& name;
  std::vector<entry> out;
  std::set<std::string> seen;

  std::string where(YAML::Node const& n) const { return fmt::format("{}:{}", name, n.Mark().line + 1); }

  void map(YAML::Node const& node, std::string const& above) {
    for (auto const& pair : node) {
      if (!pair.first.IsScalar()) weft::io::refuse("{}: a name has to be plain text", where(pair.first));
      std::string const key = above.empty() ? pair.first.Scalar() : above + "." + pair.first.Scalar();
      if (!seen.insert(key).second) weft::io::refuse("{}: {} is set twice", where(pair.first), key);
      if (out.size() > 10000) weft::io::refuse("{}: more than 10000 values", where(pair.first));
      YAML::Node const value = pair.second;
      if (value.IsMap()) map(value, key);
      else out.push_back({key, text(value, key), where(pair.first)});
    }
  }

  std::string text(YAML::Node const& value, std::string const& key) const {
    if (value.IsNull()) return "null";
    if (value.IsScalar()) return value.Scalar();
    std::string list;
    for (YAML::Node const& item : value) {
      if (!item.IsScalar()) weft::io::refuse("{}: {} holds a list in a list", where(item), key);
      list += (list.empty() ? "" : ",") + item.Scalar();
    }
    return "[" + list + "]";
  }
};

// yaml-cpp recurses: brackets nest no deeper than this in a configuration
void check_depth(std::string const& text, std::string const& name) {
  std::size_t depth = 0, line = 1, indent = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '\n') ++line, indent = 0;
    else ++indent;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 32 || indent > 4096) weft::io::refuse("{}:{}: nested too deep, or a line of more than 4096 characters", name, line);
  }
}
}  // namespace

std::vector<entry> parse_yaml(std::string const& text, std::string const& name) {
  check_depth(text, name);
  try {
    YAML::Node const root = YAML::Load(text);
    if (!root.IsMap()) weft::io::refuse("{}: expected names and values, such as data: {{train_batch_size: 64}}", name);
    reader r{name, {}, {}};
    r.map(root, "");
    return r.out;
  } catch (YAML::Exception const& e) { weft::io::refuse("{}:{}: {}", name, e.mark.line + 1, e.msg); }
}

std::vector<entry> read_yaml(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) weft::io::refuse("{}: cannot be read", path);
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) weft::io::refuse("{}: cannot be read", path);
  if (text.size() > (1 << 20)) weft::io::refuse("{}: {} bytes, a configuration has at most {}", path, text.size(), 1 << 20);
  return parse_yaml(text, path);
}

}  // namespace program
