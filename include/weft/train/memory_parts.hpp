// memory_parts.hpp — the bytes of a plan by what they are for. Buffers of the arena share bytes, so its parts add up to more than it has.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <weft/plan.hpp>

namespace weft::train {
inline std::string shown_bytes(double n) {
  return n < 1e3   ? fmt::format("{:.0f} B", n)
         : n < 1e6 ? fmt::format("{:.2f} kB", n / 1e3)
         : n < 1e9 ? fmt::format("{:.2f} MB", n / 1e6)
                   : fmt::format("{:.2f} GB", n / 1e9);
}
struct memory_part {
  char const* name;
  size_t bytes = 0;
};
inline std::vector<memory_part> memory_parts(std::vector<device_map> const& maps) {
  struct sign {
    std::string_view begins;
    char const* part;
  };
  static constexpr sign signs[] = {{"weights<", "weights"},          {"masters<", "weights"},
                                   {"moments<", "optimizer"},        {"updates_done<", "optimizer"},
                                   {"gradients<", "gradients"},      {"kv_pool<", "KV cache"},
                                   {"activations<", "activations"},  {"hidden<", "activations"},
                                   {"head_hidden<", "activations"},  {"logits<", "logits"},
                                   {"draw_logits<", "logits"},       {"rope_table<", "tables"},
                                   {"rollout_rows<", "activations"}, {"", "batch"}};
  std::vector<memory_part> parts;
  for (sign const& s : signs)
    if (std::find_if(parts.begin(), parts.end(), [&](auto const& p) { return p.name == std::string_view(s.part); }) == parts.end())
      parts.push_back({s.part});
  for (device_map const& map : maps)
    for (buffer_line const& b : map.buffers)
      for (sign const& s : signs)
        if (b.port.starts_with(s.begins)) {
          for (memory_part& p : parts)
            if (p.name == std::string_view(s.part)) p.bytes += b.bytes * map.count;
          break;
        }
  return parts;
}
inline std::string memory_text(std::vector<device_map> const& maps) {
  size_t all = 0, planned = 0;
  std::string text = "memory\n";
  for (memory_part const& p : memory_parts(maps)) {
    if (p.bytes) text += fmt::format("  {:<12} {:>10}\n", p.name, shown_bytes(double(p.bytes)));
    all += p.bytes;
  }
  for (device_map const& map : maps) planned += (map.arena + map.state) * map.count;
  return text + fmt::format("  together {}, of which {} are taken: what is never alive together shares bytes\n", shown_bytes(double(all)),
                            shown_bytes(double(planned)));
}
}  // namespace weft::train
