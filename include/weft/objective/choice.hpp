// choice.hpp — several objectives, of which a setting picks one at run time: a loss mode costs no graph of its own. All of them read the same
// log-probs under the same mask and count the same unit, so that whichever is chosen fits where the choice stands.
//
//   objective::choice<sum<ppo_clip, kl>, sum<gspo, kl>> o;
//   o.chosen = 1;
//   o.visit([&](auto const& one) { one.evaluate(...); });
#pragma once
#include "sum.hpp"

namespace weft::objective {
namespace detail {
template <class First, class Sum> inline constexpr bool alike =
    std::is_same_v<typename First::unit, typename Sum::unit> || (!is_pair<typename First::unit> && !is_pair<typename Sum::unit>);
template <class First, class Sum> struct agrees
    : demand<std::is_same_v<typename First::reads, typename Sum::reads>,
             error::CHOICE_READS_SOMETHING_ELSE<Sum, error::is<typename Sum::reads>, error::wanted<typename First::reads>>>,
      demand<std::is_same_v<typename First::mask, typename Sum::mask> && alike<First, Sum>,
             error::CHOICE_COUNTS_SOMETHING_ELSE<Sum, error::is<typename Sum::mask>, error::wanted<typename First::mask>>> {};
}  // namespace detail

template <class First, class... Rest> struct choice : First, Rest... {
  static_assert((sizeof(detail::agrees<First, First>) + ... + sizeof(detail::agrees<First, Rest>)) > 0);
  using unit = typename First::unit;
  using mask = typename First::mask;
  using reads = typename First::reads;
  static constexpr size_t size = 1 + sizeof...(Rest);

  i32 chosen = 0;

  template <class F> void visit(F&& f) const {  // f(the chosen one)
    i32 i = 0;
    (void)((i++ == chosen && (f(static_cast<First const&>(*this)), true)) || ... ||
           (i++ == chosen && (f(static_cast<Rest const&>(*this)), true)));
  }
  template <class F> void each(F&& f) {  // f(every one), in order
    f(static_cast<First&>(*this));
    (f(static_cast<Rest&>(*this)), ...);
  }
};

// f(the objective): of a choice the chosen one, a single sum itself
template <class Objective, class F> void visit(Objective const& o, F&& f) {
  if constexpr (requires { o.chosen; }) o.visit(f);
  else f(o);
}
}  // namespace weft::objective
