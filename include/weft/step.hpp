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
  class instance& instance() override {
    return bound_;
  }

 private:
  bound<E, G...> bound_;
};
}  // namespace detail
template <class... G, class E, class... Given> std::unique_ptr<any_step> make_step(E const& on, Given const&... g) {
  static_assert(detail::demand_bind<detail::list<Given..., computes_in>, G...>);
  computes_in const by{sizeof(typename E::compute)};
  detail::given const all[] = {{detail::given_as<Given>::tag, &g}..., {detail::tag<computes_in>, &by}};
  return std::make_unique<detail::erased<E, G...>>(on, detail::givens{all, sizeof...(Given) + 1});
}
}  // namespace weft
