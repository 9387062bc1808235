// One-step-off: the rollout of the next step runs beside the training of this one; a third graph hands over between them.
#include "weft/weft.hpp"
#include "weft/engine/cpu.hpp"
#include <doctest/doctest.h>
namespace {
using weft::in, weft::out, weft::state, weft::next, weft::i32;
struct n : weft::dim {};
struct prompts : weft::port<i32, n> {};
struct loss : weft::port<i32> {};
struct logits : weft::port<i32, n> {};
struct fresh : weft::port<i32, n> {};
struct experience : weft::port<i32, n> {};  // state: written, then learnt from
struct weights : weft::port<i32> {};
struct rollout_weights : weft::port<i32> {};  // state: the newest, and those sampled from
struct generate {
  static void run(in<prompts> p, state<rollout_weights> w, next<fresh> f) {
    for (size_t i = 0; i < f.count(); ++i) f(i) = p(i) * w();
  }
};
struct score {
  static void run(state<experience> e, out<logits> l) {
    for (size_t i = 0; i < l.count(); ++i) l(i) = e(i);
  }
};
struct learn {
  static void run(in<logits> l, next<weights> w, out<loss> s) {
    s() = 0;
    for (size_t i = 0; i < l.count(); ++i) s() += l(i);
    w() += 1;
  }
};
struct pass_on {
  static void run(state<fresh> f, next<experience> e) {
    for (size_t i = 0; i < f.count(); ++i) e(i) = f(i);
  }
};
struct publish {
  static void run(state<weights> w, next<rollout_weights> r) { r() = w(); }
};
using rollouts = weft::graph<weft::feed<prompts>, generate>;
using training = weft::graph<score, learn, weft::keep<loss>>;
using hand_over = weft::graph<pass_on, publish>;
static_assert(weft::together<rollouts, training>());  // nothing that one rewrites is touched by the other
static_assert(!weft::together<rollouts, hand_over>() && !weft::together<training, hand_over>());

}  // namespace

TEST_CASE("shared") {
  auto s = weft::bind<rollouts, training, hand_over>(weft::cpu{}, n{4});
  for (size_t i = 0; i < 4; ++i) s.view_of<prompts>()(i) = int(i), s.view_of<experience>()(i) = 0;
  s.loaded<fresh>();
  s.view_of<weights>()() = s.view_of<rollout_weights>()() = 1;
  int const want[] = {0, 6, 12, 18, 24};  // step k learns from what step k - 1 sampled
  for (int k = 0; k < 5; ++k) {
    s.step<rollouts>();  // a trainer runs these two at the same time
    s.step<training>();
    s.step<hand_over>();
    if (s.view_of<loss>()() != want[k]) { FAIL(""); }
  }
}
