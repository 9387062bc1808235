// stage_graph.hpp — the graph of a step as data for pictures: nodes in the order of the plan, edges between them, the time that each took.
#pragma once
#include <string>
#include <vector>

#include <weft/io/json.hpp>
#include <weft/plan.hpp>

namespace weft::train {
struct stage_node {
  std::string name, place, kind, count;  // kind: stage, move, loop, feed or keep; count: of a loop
  size_t depth = 0, node = 0;            // loops around it; its number in the program
  bool on_host = false;
};
struct stage_edge {
  size_t from, to;  // indices of nodes
  std::string port;
};
struct stage_graph {
  std::vector<stage_node> nodes;
  std::vector<stage_edge> edges;
};

inline stage_graph stage_graph_of(weft::detail::program const& p) {
  stage_graph g;
  std::vector<size_t> place(p.n, p.n);
  for (size_t i = 1; i < p.n; ++i) {
    size_t const n = p.order[i];
    auto const& me = p.nodes[n];
    if (me.what == move::idle) continue;
    place[n] = g.nodes.size();
    std::string const name = weft::detail::node_name(p, n);
    char const* const kind = me.loop                    ? "loop"
                             : me.what != move::none    ? "move"
                             : !me.pinned               ? "stage"
                             : name.starts_with("feed") ? "feed"
                                                        : "keep";
    g.nodes.push_back({me.sequence ? "then" : name, kind == std::string_view("stage") ? weft::detail::plain(me.pool) : "", kind,
                       me.loop ? weft::detail::loop_count(p, n) : "", me.depth - 1u, n, me.host});
  }
  weft::detail::each_edge(p, [&](size_t from, size_t to, size_t row) {
    if (place[from] < p.n && place[to] < p.n) g.edges.push_back({place[from], place[to], weft::detail::plain(p.rows[row].at->name)});
  });
  return g;
}
// seconds: by number in the program, of all `steps` together.
inline io::json graph_json(stage_graph const& g, std::vector<double> const& seconds, std::int64_t steps) {
  io::json::array nodes, edges;
  for (stage_node const& n : g.nodes)
    nodes.push_back(io::json::object{{"name", n.name},
                                     {"place", n.place},
                                     {"kind", n.kind},
                                     {"count", n.count},
                                     {"depth", std::int64_t(n.depth)},
                                     {"seconds", n.node < seconds.size() ? seconds[n.node] : 0.0}});
  for (stage_edge const& e : g.edges) edges.push_back(io::json::array{std::int64_t(e.from), std::int64_t(e.to), e.port});
  return io::json::object{{"steps", steps}, {"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}
}  // namespace weft::train
