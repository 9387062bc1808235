// The arena over random graphs: loops in loops, branches, updates in place, sequences, scratch, until and upto, two sets of devices.
// An oracle unrolls every loop into two turns and asks of all events which must come before which; it knows nothing of bits and lifts.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <random>
#include <vector>
#include "weft/graph.hpp"
namespace {
using namespace weft::detail;
using weft::access;
constexpr size_t N = 28, R = 96;  // what is not needed is filled with nodes and rows that do nothing

struct random_graph {
  table<N, R> t{};
  std::array<shape, 2> places{};
  std::mt19937 random;
  size_t nodes = 1, rows = 0, ports = 0;
  std::vector<size_t> first_row, written_in;  // per port: its first row; the node that writes it

  size_t below(size_t n) { return random() % n; }
  size_t add_node(size_t parent) {
    auto& n = t.nodes[nodes];
    n.parent = index(parent);
    n.depth = index(t.nodes[parent].depth + 1);
    n.first = index(rows);
    return nodes++;
  }
  void add_row(size_t node, access how, size_t port, size_t place) {
    if (port == first_row.size()) {
      first_row.push_back(rows);
      written_in.push_back(node);
    }
    t.rows[rows] = {index(first_row[port]), index(node), how, &places[place]};
    ++rows;
    ++t.nodes[node].rows;
  }
  size_t some_port() { return below(first_row.size()); }
  void stage(size_t parent) {
    size_t const n = add_node(parent);
    for (size_t k = below(3); k-- > 0;) add_row(n, access::in, some_port(), 0);
    if (below(4) == 0) add_row(n, access::inout, some_port(), 0);
    if (below(3) == 0) {
      size_t const p = first_row.size();
      add_row(n, access::scratch, p, below(2));
      t.nodes[n].host = false;
    }
    for (size_t k = 1 + below(2); k-- > 0;) add_row(n, access::out, first_row.size(), below(2));
  }
  void body(size_t parent, size_t depth, size_t count) {
    while (count-- > 0 && nodes + 3 < N && rows + 14 < R) {
      if (depth == 0 || below(4)) {
        stage(parent);
        continue;
      }
      size_t const l = add_node(parent), kind = below(4);
      t.nodes[l].loop = true;
      t.nodes[l].sequence = kind == 0;
      if (kind == 1) add_row(l, access::in, some_port(), 0);  // upto
      size_t const until = rows;
      if (kind == 2) {
        add_row(l, access::in, 0, 0);
        t.nodes[l].until = true;
      }
      body(l, depth - 1, 1 + below(4));
      if (kind == 2) {  // until: reads what a stage of its body writes
        stage(l);
        t.rows[until].port = t.rows[rows - 1].port;
      }
    }
  }
  explicit random_graph(unsigned seed) : random{seed} {
    places[0].devices = 1;
    places[1].devices = 2;
    t.nodes[0].loop = true;
    for (size_t k = 0; k < 2; ++k) {
      size_t const n = add_node(0);
      t.nodes[n].pinned = true;
      add_row(n, access::out, k, 0);
    }
    body(0, 3, 4 + below(8));
    size_t const n = add_node(0);
    t.nodes[n].pinned = true;
    add_row(n, access::in, some_port(), 0);
    while (nodes < N) t.nodes[add_node(0)].pinned = true;
    for (; rows < R; ++rows) t.rows[rows] = {index(rows), index(N - 1), access::absent, &places[0]};
  }
  bool legal() const {  // scratch is no edge, nothing is updated or read that is scratch
    for (auto const& r : t.rows)
      for (auto const& q : t.rows)
        if (r.port == q.port && r.how != access::absent && q.how != access::absent &&
            (r.how == access::scratch) != (q.how == access::scratch))
          return false;
    return true;
  }
};

struct event {
  size_t node;
  std::array<size_t, N> turn;
  bool tail;
};  // turn of every loop around it; tail: until, at the end of a turn
struct oracle {
  table<N, R> const& t;
  std::vector<std::vector<char>> order = std::vector<std::vector<char>>(N, std::vector<char>(N));  // of siblings, closed
  std::vector<event> events;

  std::vector<size_t> loops(size_t n) const {  // around it, from the outside, without the step
    std::vector<size_t> up;
    for (size_t l = t.nodes[n].parent; l; l = t.nodes[l].parent) up.insert(up.begin(), l);
    return up;
  }
  std::pair<size_t, size_t> siblings(size_t a, size_t b) const {
    auto x = loops(a), y = loops(b);
    x.push_back(a);
    y.push_back(b);
    size_t k = 0;
    while (k < x.size() && k < y.size() && x[k] == y[k]) ++k;
    return k < x.size() && k < y.size() ? std::pair{x[k], y[k]} : std::pair<size_t, size_t>{0, 0};
  }
  void need(std::vector<std::vector<char>>& m, size_t first, size_t second) const {
    if (auto [a, b] = siblings(first, second); a != b) m[a][b] = 1;
  }
  static void close(std::vector<std::vector<char>>& m) {
    for (size_t k = 0; k < N; ++k)
      for (size_t i = 0; i < N; ++i)
        for (size_t j = 0; j < N; ++j) m[i][j] |= char(m[i][k] & m[k][j]);
  }
  explicit oracle(table<N, R> const& all) : t{all} {
    auto edges = order;
    for (auto const& r : t.rows)
      for (auto const& w : t.rows)
        if (r.port == w.port && w.how == access::out && (r.how == access::in || r.how == access::inout)) need(edges, w.node, r.node);
    for (size_t a = 1; a < N; ++a)
      for (size_t b = a + 1; b < N; ++b)
        if (t.nodes[a].parent == t.nodes[b].parent && t.nodes[t.nodes[a].parent].sequence) edges[a][b] = 1;
    auto base = edges;
    close(base);
    for (auto const& u : t.rows)
      for (auto const& r : t.rows)
        if (u.how == access::inout && r.how == access::in && u.port == r.port) {
          auto const [a, b] = siblings(r.node, u.node);
          if (a == b || !base[a][b]) need(edges, u.node, r.node);
        }
    order = edges;
    close(order);
    for (size_t n = 1; n < N; ++n) {
      auto around = loops(n);
      if (t.nodes[n].until) around.push_back(n);
      std::vector<event> here{{n, {}, t.nodes[n].until}};
      for (size_t l : around)
        if (!t.nodes[l].sequence)
          for (size_t i = here.size(); i-- > 0;) {
            here.push_back(here[i]);
            here.back().turn[l] = 1;
          }
      if (!t.nodes[n].loop || t.nodes[n].rows) events.insert(events.end(), here.begin(), here.end());
    }
  }
  bool before(event const& a, event const& b) const {
    auto x = loops(a.node), y = loops(b.node);
    if (a.tail) x.push_back(a.node);
    if (b.tail) y.push_back(b.node);
    for (size_t k = 0; k < x.size() && k < y.size() && x[k] == y[k]; ++k)
      if (a.turn[x[k]] != b.turn[y[k]]) return a.turn[x[k]] < b.turn[y[k]];
    if (b.tail && a.node != b.node && std::count(x.begin(), x.end(), b.node)) return true;  // the end of the turn comes last
    if (a.tail && std::count(y.begin(), y.end(), a.node)) return false;
    auto const [s, q] = siblings(a.node, b.node);
    if (s != q) return order[s][q];
    return a.node != b.node && !a.tail && std::count(y.begin(), y.end(), a.node);  // the count of an upto comes first
  }
  bool touches(row const& user, size_t user_row, size_t first) const {
    auto const& w = t.rows[first];
    return user_row == first || (w.how == access::out && user.port == w.port && user.how != access::scratch && user.how != access::absent);
  }
  // The lives of a buffer: for every turn of the loops around all its users, its events.
  struct life {
    std::vector<event> writes, uses;
    bool pinned = false;
  };
  std::vector<life> lives(size_t first) const {
    std::vector<size_t> common;
    bool any = false, pinned = false;
    for (size_t r = 0; r < R; ++r)
      if (touches(t.rows[r], r, first)) {
        auto around = loops(t.rows[r].node);
        if (t.nodes[t.rows[r].node].until) around.push_back(t.rows[r].node);
        pinned = pinned || t.nodes[t.rows[r].node].pinned;
        if (!any) common = around;
        any = true;
        size_t k = 0;
        while (k < common.size() && k < around.size() && common[k] == around[k]) ++k;
        common.resize(k);
      }
    std::vector<life> all;
    std::vector<std::array<size_t, N>> keys;
    for (auto const& e : events)
      for (size_t r = t.nodes[e.node].first; r < size_t(t.nodes[e.node].first + t.nodes[e.node].rows); ++r) {
        if (!touches(t.rows[r], r, first)) continue;
        std::array<size_t, N> key{};
        for (size_t l : common) key[l] = e.turn[l] + 1;
        size_t k = size_t(std::find(keys.begin(), keys.end(), key) - keys.begin());
        if (k == keys.size()) {
          keys.push_back(key);
          all.push_back({});
          all.back().pinned = pinned;
        }
        all[k].uses.push_back(e);
        if (r == first) all[k].writes.push_back(e);
      }
    return all;
  }
  bool over(life const& a, life const& b) const {  // a before b starts
    for (auto const& u : a.uses)
      for (auto const& w : b.writes)
        if (!before(u, w)) return false;
    return true;
  }
  bool may_meet(size_t a, size_t b) const {
    for (auto const& x : lives(a))
      for (auto const& y : lives(b))
        if (x.pinned || y.pinned || (!over(x, y) && !over(y, x))) return true;
    return false;
  }
};

// The heaviest set of which every two meet: branch and bound, largest first.
template <class Meet> size_t heaviest(std::vector<size_t> all, std::vector<size_t> const& bytes, Meet const& meet) {
  std::sort(all.begin(), all.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  size_t best = 0;
  auto const grow = [&](auto const& self, std::vector<size_t> const& open, size_t weight) -> void {
    best = std::max(best, weight);
    size_t rest = 0;
    for (size_t i : open) rest += bytes[i];
    for (size_t k = 0; k < open.size() && weight + rest > best; rest -= bytes[open[k++]]) {
      std::vector<size_t> next;
      for (size_t q = k + 1; q < open.size(); ++q)
        if (meet(open[k], open[q])) next.push_back(open[q]);
      self(self, next, weight + bytes[open[k]]);
    }
  };
  grow(grow, all, 0);
  return best;
}
}  // namespace

TEST_CASE("buffers that may be alive together never overlap") {
  size_t graphs = 0, loops = 0, pairs = 0, meeting = 0, careful = 0;
  double worst = 1, sum = 0;
  for (unsigned seed = 0; graphs < 400; ++seed) {
    random_graph const g{seed};
    if (!g.legal()) continue;
    auto const p = make_plan(g.t);
    if (p.cyclic || p.open_a != nowhere) continue;
    ++graphs;
    sheet const t = g.t;
    for (size_t n = 1; n < N; ++n) loops += t.nodes[n].loop;
    std::vector<buffer> buffers(count_buffers(t));
    find_buffers(t, buffers.data());
    std::mt19937 random{seed};
    size_t const n = buffers.size();
    std::vector<size_t> bytes(n), offset(n);
    for (auto& b : bytes) b = random() % 5 ? 1 + random() % 100 : 100 * (random() % 20);
    place(t, p.before.data(), buffers.data(), n, bytes.data(), 1, offset.data());
    oracle const o{g.t};
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j) {
        if (t.rows[buffers[i].row].at->devices != t.rows[buffers[j].row].at->devices) continue;
        bool const meet = o.may_meet(buffers[i].row, buffers[j].row),
                   overlap = offset[i] < offset[j] + bytes[j] && offset[j] < offset[i] + bytes[i];
        CAPTURE(seed);
        CAPTURE(i);
        CAPTURE(j);
        CHECK_FALSE((meet && overlap && bytes[i] && bytes[j]));
        bool const apart =
            !done_before(t, p.before.data(), buffers[i], buffers[j]) && !done_before(t, p.before.data(), buffers[j], buffers[i]);
        CHECK((apart || !meet));
        ++pairs;
        meeting += meet;
        careful += apart && !meet;
      }
    for (size_t devices : {1, 2}) {  // no arena is smaller than the heaviest set of which all may meet
      std::vector<size_t> here;
      size_t end = 0;
      for (size_t b = 0; b < n; ++b)
        if (t.rows[buffers[b].row].at->devices == devices) {
          here.push_back(b);
          end = std::max(end, offset[b] + bytes[b]);
        }
      size_t const least = heaviest(here, bytes, [&](size_t i, size_t j) {
        return !done_before(t, p.before.data(), buffers[i], buffers[j]) && !done_before(t, p.before.data(), buffers[j], buffers[i]);
      });
      CHECK(end >= least);
      double const ratio = least ? double(end) / double(least) : 1;
      worst = std::max(worst, ratio);
      sum += ratio;
    }
  }
  MESSAGE(graphs << " graphs with " << loops << " loops: " << pairs << " pairs of buffers, " << meeting << " may meet, " << careful
                 << " are kept apart without need; peak over the lower bound: " << sum / double(2 * graphs) << " on average, " << worst
                 << " at most");
  CHECK(loops > graphs);
  CHECK(sum / double(2 * graphs) < 1.01);
}
