// step.hpp — a bound graph without its type, for programs: the graph is compiled in one file of its own, as
//   std::unique_ptr<weft::any_step> make(...) { return weft::make_step<grpo>(weft::cpu{}, batch{64}, ...); }
// and everybody else includes this file and the ports. Ports, settings and dims are found by the names of their types.
// Errors: a refusal for a port, setting or graph that is not there.
#pragma once
#include <memory>
#include "plan.hpp"

namespace weft {
class any_step {
 public:
  virtual ~any_step() = default;
  virtual void step(size_t graph = 0) = 0;  // the graphs are numbered as they were bound
  virtual detail::instance& instance() = 0;
  // State may lie in memory that the host does not see: these copy, and wait until it is done.
  virtual void write(void* to, void const* from, size_t bytes) = 0;
  virtual void read(void* to, void const* from, size_t bytes) = 0;
  virtual u64 checksum(void const* data, size_t bytes) = 0;  // of state
  virtual void time_into(double* seconds) = 0;               // [nodes] of the graph that runs, added to; null: no more
  virtual void watch(stage_watch) = 0;                       // called as stages end, where the executor sees that; {}: no more
  size_t real_bytes() { return instance().program_at(0).real_bytes; }

  template <class P> bool has() { return instance().find(detail::tag<P>, 0).data != nullptr; }
  template <class P, class T = f32> auto view_of(size_t device = 0) {  // as of bound; T: of a port of reals
    auto const s = instance().find(detail::tag<P>, device);
    if (!s.data) refuse("port ", detail::spelled<P>());
    instance().mark_loaded(detail::tag<P>);
    return detail::load<detail::seen_in<P, T>>(s);
  }
  template <class T> T& setting() {
    void* const at = instance().find_setting(detail::tag<T>);
    if (!at) refuse("setting ", detail::spelled<T>());
    return *static_cast<T*>(at);
  }
  template <class P> void loaded() { instance().mark_loaded(detail::tag<P>); }
  std::string plan(plan_form form = plan_form::text, size_t graph = 0) { return plan_text(instance(), form, graph); }
  std::vector<device_map> memory(size_t graph = 0) { return memory_map(instance(), graph); }

 private:
  [[noreturn]] static void refuse(char const* what, char const* spelled) {
    refusal r{};
    (r << "weft::step: there is no " << what).name(spelled) << " in this graph";
    throw r;
  }
};

namespace detail {
// The sum of all words, each weighed by its place: whoever adds them, in whatever order, finds the same. A last part of a word counts as
// filled with zeros.
constexpr u64 weighed(u64 word, u64 place) { return word * (2 * place + 0x9E3779B97F4A7C15u) ^ place; }
inline u64 checksum_of(void const* data, size_t bytes) {
  auto const* const at = static_cast<unsigned char const*>(data);
  u64 sum = bytes;
  for (size_t i = 0; 8 * i < bytes; ++i) {
    u64 word = 0;
    __builtin_memcpy(&word, at + 8 * i, bytes - 8 * i < 8 ? bytes - 8 * i : 8);
    sum += weighed(word, i);
  }
  return sum;
}
template <class E, class... G> class erased final : public any_step {
 public:
  erased(E const& on, givens const& given) : bound_{on, given} {}
  void step(size_t graph) override {
    if constexpr (runs<E>) {
      size_t i = 0;
      if (((i++ == graph && (bound_.template step<G>(), true)) || ...)) return;
    }
    refusal r{};
    r << "weft::step: there is no graph " << graph << " to run among " << sizeof...(G) << (runs<E> ? "" : ": it was bound dry");
    throw r;
  }
  class instance& instance() override { return bound_; }
  void write(void* to, void const* from, size_t bytes) override {
    if constexpr (requires(E& on) { on.write(to, from, bytes); }) bound_.executor().write(to, from, bytes);
    else __builtin_memcpy(to, from, bytes);
  }
  void read(void* to, void const* from, size_t bytes) override {
    if constexpr (requires(E& on) { on.read(to, from, bytes); }) bound_.executor().read(to, from, bytes);
    else __builtin_memcpy(to, from, bytes);
  }
  u64 checksum(void const* data, size_t bytes) override {
    if constexpr (requires(E& on) { on.checksum(data, bytes); }) return bound_.executor().checksum(data, bytes);
    else return checksum_of(data, bytes);
  }
  void time_into(double* seconds) override {
    if constexpr (requires(E& on) { on.seconds; }) bound_.executor().seconds = seconds;
  }
  void watch([[maybe_unused]] stage_watch by) override {
    if constexpr (requires(E& on) { on.watch; }) bound_.executor().watch = by;
  }

 private:
  bound<E, G...> bound_;
};
}  // namespace detail
// From a list of what was given, as a program hands it to the file that compiled the graph.
template <class... G, class E> std::unique_ptr<any_step> make_step_from(E const& on, detail::givens const& list) {
  computes_in const by{sizeof(typename E::compute)};
  std::vector<detail::given> all(list.all, list.all + list.n);
  all.push_back({detail::tag<computes_in>, &by});
  return std::make_unique<detail::erased<E, G...>>(on, detail::givens{all.data(), all.size()});
}
template <class... G, class E, class... Given> std::unique_ptr<any_step> make_step(E const& on, Given const&... g) {
  static_assert(detail::demand_bind<detail::list<Given..., computes_in>, G...>);
  detail::given const all[] = {{detail::given_as<Given>::tag, &g}...};
  return make_step_from<G...>(on, {all, sizeof...(Given)});
}
}  // namespace weft
