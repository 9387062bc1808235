// memory.hpp — where everything lies: sizes from what bind was given, moves that turn out idle, slices, the arenas of all graphs and the
// state and settings they share. No templates of a graph. Errors: a refusal that says which size of which port does not go.
#pragma once
#include <new>
#include "foreign.hpp"
#include "program.hpp"

namespace weft::detail {
constexpr size_t aligned(size_t n) { return (n + 255) / 256 * 256; }
inline bool is_state(row const& r) { return kind_of(r.how) == kind::state; }
inline bool has_bytes(row const& r) { return r.how != access::setting && r.how != access::absent; }

// ---- one graph: sizes, idle moves, slices, offsets -----------------------------------------------------
inline size_t times_or_refuse(char const* port, size_t a, size_t b) {
  size_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  refusal r{};
  (r << "weft::bind: the bytes of ").name(port) << " are more than a size_t counts: " << a << " x " << b;
  throw r;
}
inline void refuse_zero(dim_info const& d, size_t size, char const* what) {
  if (size) return;
  refusal r{};
  (r << "weft::bind: ").name(d.name) << " is 0: " << what;
  throw r;
}
inline void size(program& p, givens const& g) {
  for (size_t n = 0; n < p.n; ++n) {
    auto const& me = p.nodes[n];
    p.times[n] = me.times ? size_of(*me.times, g) : 1;
    p.devices[n] = 1;
    if (me.times && me.over != me.cut) refuse_zero(*me.times, p.times[n], "a part cuts into one share at least");
  }
  for (size_t r = 0; r < p.r; ++r) {
    auto const& at = *p.rows[r].at;
    auto& l = p.lines[r];
    if (!has_bytes(p.rows[r])) continue;
    for (size_t k = 0; k < at.rank; ++k) l.dims[k] = size_of(*at.info[k], g);
    for (size_t a = 0; a < at.axes; ++a) {
      l.degree[a] = size_of(*at.axis[a], g);
      refuse_zero(*at.axis[a], l.degree[a], "an axis has one device at least");
      l.devices *= l.degree[a];
    }
  }
}
// Takes a port's bytes from where the host program has them.
inline void adopt(program& p, size_t row, foreign_memory const& from) {
  auto const& at = *p.rows[row].at;
  auto& l = p.lines[row];
  refusal e{};
  (e << "weft::bind: the foreign memory of ").name(at.name);
  if (l.devices != 1) throw e << " is on one device, the port is on " << l.devices;
  if (from.element != p.element(row)) throw e << " has elements of " << from.element << " bytes, the executor's have " << p.element(row);
  size_t stride = 1;
  for (size_t k = at.rank; k-- > 0;) {
    if (from.n[k] != l.dims[k]) throw e << " has extent " << from.n[k] << " in dim " << k << ", the graph has " << l.dims[k];
    if (from.strides[at.rank - 1] && from.strides[k] != stride && from.n[k] > 1)
      throw e << " has stride " << from.strides[k] << " in dim " << k << ", dense is " << stride << ": make it contiguous";
    stride *= l.dims[k];
  }
  if (!from.data && stride) throw e << " is a null pointer";
  l.foreign = static_cast<std::byte*>(from.data);
}
inline void adopt_all(program& p, givens const& given) {
  for (size_t r = 0; r < p.r; ++r)
    if (void const* const from = has_bytes(p.rows[r]) && is_state(p.rows[r]) ? given.find(p.rows[r].at->port) : nullptr)
      adopt(p, r, *static_cast<foreign_memory const*>(from));
  for (size_t b = 0; b < p.buffer_count; ++b) {
    row const& first = p.rows[p.buffers[b].row];
    if (first.how == access::scratch || p.nodes[first.node].what != move::none) continue;
    auto const* const from = static_cast<foreign_memory const*>(given.find(first.at->port));
    if (!from) continue;
    bool seen = false;  // by the host: all of it is there all the step long
    for (size_t r = 0; r < p.r; ++r)
      if (uses(p, r, p.buffers[b].row)) {
        adopt(p, r, *from);
        seen = seen || p.nodes[p.rows[r].node].pinned;
      }
    if (!seen) {
      refusal e{};
      throw(e << "weft::bind: ").name(first.at->name) << " cannot lie in foreign memory: it is neither fed, kept nor state";
    }
    p.bytes[b] = 0;
  }
}
inline move needed(program const& p, size_t a, size_t b, size_t devices) {  // between two rows, at the bound degrees
  auto const &from = *p.rows[a].at, &to = *p.rows[b].at;
  if (p.ways(a, from.sums) > 1) return move::sum;
  bool gather = false, scatter = false, same = true;
  for (size_t k = 0; k < from.rank; ++k) {
    size_t const x = p.ways(a, from.cuts[k]), y = p.ways(b, to.cuts[k]);
    gather = gather || x > y;
    scatter = scatter || x < y;
    for (size_t d = 0; d < devices && same; ++d) same = x == y && p.coordinate(a, from.cuts[k], d) == p.coordinate(b, to.cuts[k], d);
  }
  if (gather != scatter) return gather ? move::gather : move::scatter;
  return !same ? move::all_to_all : from.devices != to.devices ? move::send : move::idle;
}
inline void drop_idle(program& p, size_t move_index, size_t devices) {  // its readers read the original
  size_t const a = p.written_rows + 2 * move_index, b = a + 1;
  auto& me = p.own_nodes[p.rows[a].node];
  me.what = needed(p, a, b, devices);
  if (me.what != move::idle) return;
  for (size_t r = 0; r < p.written_rows; ++r)
    if (p.rows[r].port == b) p.own_rows[r] = p.written[r];
}
inline void slice(program& p, size_t row) {  // cut by the loops around it, from the outside
  auto const& r = p.rows[row];
  auto& l = p.lines[row];
  size_t const home = is_state(r) ? 0 : size_t(p.buffers[p.buffer_of(row)].home);
  size_t around[most_loops], depth = 0, most[most_dims];
  for (size_t k = 0; k < r.at->rank; ++k) most[k] = share{l.dims[k], p.ways(row, r.at->cuts[k]), 0}.size();
  for (size_t loop = p.around(row); loop; loop = p.nodes[loop].parent) around[depth++] = loop;
  while (depth-- > 0) {
    size_t const loop = around[depth], k = p.cut(loop, *r.at);
    if (k == r.at->rank) continue;
    bool const single = r.at->dims[k] == p.nodes[loop].over, one_slice = p.contains(loop, home);
    l.cuts[l.cut_count++] = {index(loop), index(k), single, one_slice};
    if (one_slice) most[k] = single ? 1 : share{most[k], p.times[loop], 0}.size();  // all users are in the same turn
  }
  l.whole = p.element(row);
  for (size_t k = 0; k < r.at->rank; ++k) l.whole = times_or_refuse(r.at->name, l.whole, most[k]);
  if (r.how == access::out || r.how == access::scratch) p.bytes[p.buffer_of(row)] = p.nodes[r.node].what == move::idle ? 0 : l.whole;
}

// ---- memory: per set of devices, the arenas of all graphs and the state they share; settings ----------
struct region {
  id devices;
  char const* name;
  size_t count = 1, arena = 0, state = 0;
  std::byte* base = nullptr;
};
struct kept {
  shape const* at;
  size_t region, bytes, offset;
  bool foreign = false, loaded = false;
};
struct held_setting {
  id tag;
  std::byte* at;
};
struct memory {
  many<region> regions;
  many<kept> states;
  many<held_setting> settings;
  many<std::byte> setting_bytes;
  size_t region_count = 0, state_count = 0, setting_count = 0, setting_end = 0;

  size_t region_of(shape const& s) const {
    size_t k = 0;
    while (k < region_count && regions[k].devices != s.devices) ++k;
    return k;
  }
  kept* find_state(id port) const {
    for (size_t k = 0; k < state_count; ++k)
      if (states[k].at->port == port) return &states[k];
    return nullptr;
  }
  std::byte* find_setting(id t) const {
    for (size_t k = 0; k < setting_count; ++k)
      if (settings[k].tag == t) return settings[k].at;
    return nullptr;
  }
  void meet_devices(program const& p) {
    for (size_t r = 0; r < p.r; ++r)
      if (has_bytes(p.rows[r])) {
        size_t const k = region_of(*p.rows[r].at);
        if (k == region_count) regions[region_count++] = {p.rows[r].at->devices, p.rows[r].at->device_name};
        if (regions[k].count < p.lines[r].devices) regions[k].count = p.lines[r].devices;
      }
  }
  void lay_out(program& p, givens const& given) {
    for (size_t m = 0, r = p.written_rows + 1; r < p.r; ++m, r += 2) drop_idle(p, m, regions[region_of(*p.rows[r].at)].count);
    for (size_t r = 0; r < p.r; ++r)
      if (has_bytes(p.rows[r])) {
        slice(p, r);
        if (!is_state(p.rows[r]) || find_state(p.rows[r].at->port)) continue;
        auto& g = regions[region_of(*p.rows[r].at)];
        bool const foreign = given.find(p.rows[r].at->port) != nullptr;
        states[state_count++] = {p.rows[r].at, region_of(*p.rows[r].at),        p.lines[r].whole, g.state,
                                 foreign,      foreign || p.lines[r].whole == 0};
        if (!foreign) g.state += aligned(p.lines[r].whole);
      }
    adopt_all(p, given);
    place(p, p.before, p.buffers, p.buffer_count, p.bytes.at, 256, p.offset.at);
  }
  void copy_settings(program& p, givens const& g) {  // once for each type: all stages see the same
    for (size_t r = 0; r < p.written_rows; ++r)
      if (p.rows[r].how == access::setting) {
        auto const& at = *p.rows[r].at;
        std::byte* place = find_setting(at.port);
        if (!place) {
          place = setting_bytes.at + setting_end;
          setting_end += (at.element + 15) / 16 * 16;
          settings[setting_count++] = {at.port, place};
          void const* const from = g.find(at.port);
          if (!from) {  // a list that no type has checked
            refusal e{};
            (e << "weft::bind: the setting ").name(at.name) << " was not given";
            throw e;
          }
          __builtin_memcpy(place, from, at.element);
        }
        p.slots[r].data = p.lines[r].base = place;
      }
  }
  size_t need(program const& p, size_t region) const {  // bytes of the arena of one graph
    size_t end = 0;
    for (size_t b = 0; b < p.buffer_count; ++b)
      if (region_of(*p.rows[p.buffers[b].row].at) == region && p.offset[b] + p.bytes[b] > end) end = p.offset[b] + p.bytes[b];
    return aligned(end);
  }
  void attach(program& p, size_t const* start) const {  // start: where its arena begins in each region
    for (size_t r = 0; r < p.r; ++r)
      if (has_bytes(p.rows[r])) {
        auto& l = p.lines[r];
        auto const k = region_of(*p.rows[r].at);
        auto const& g = regions[k];
        l.device = g.arena + g.state;
        size_t const at = is_state(p.rows[r]) ? g.arena + find_state(p.rows[r].at->port)->offset : start[k] + p.offset[p.buffer_of(r)];
        if (l.foreign && g.count > 1) {  // each of them would work on it
          refusal e{};
          (e << "weft::bind: the foreign memory of ").name(p.rows[r].at->name) << " is on one device, and its stages run on " << g.count;
          throw e;
        }
        l.base = !g.base ? nullptr : l.foreign ? l.foreign : g.base + at;
        p.devices[p.rows[r].node] = g.count;
      }
  }
  void check_loaded(program& p) const {
    for (size_t r = 0; r < p.r && !p.loaded; ++r)
      if (is_state(p.rows[r]) && !find_state(p.rows[r].at->port)->loaded) {
        refusal e{};
        (e << "weft::step: state ").name(p.rows[r].at->name) << " was never loaded: fill its view_of before the first step, or say loaded";
        throw e;
      }
    p.loaded = true;
  }
};
}  // namespace weft::detail
