// hello_graph.cpp — the smallest graph: two samples of a bandit, a reward, an advantage, one step of a policy gradient.
// A stage is a struct with a static run(); the types of its parameters are the edges of the graph. Prints the plan, then the reward rise.
#include <cmath>
#include <cstdio>
#include <weft/engine/cpu.hpp>
#include <weft/plan.hpp>
using weft::in, weft::out, weft::state, weft::next, weft::setting, weft::f32, weft::i32;

struct sample : weft::dim {};                                 // how many: given at bind
struct arm : weft::fixed<4> {};
struct noise : weft::port<f32, sample> {};                    // one line per edge: element and shape
struct choices : weft::port<i32, sample> {};
struct rewards : weft::port<f32, sample> {};
struct advantages : weft::port<f32, sample> {};
struct logits : weft::port<f32, arm> {};                      // the policy: state, from step to step
struct mean_reward : weft::port<f32> {};
struct learning { f32 rate; };

struct choose {                                               // inverse of the distribution function of softmax(logits)
  static void run(in<noise> u, state<logits> l, out<choices> c) {
    f32 sum = 0;
    for (f32 x : l) sum += std::exp(x);
    for (size_t i = 0; i < c.count(); ++i) {
      f32 left = u(i) * sum;
      c(i) = 0;
      while (c(i) + 1 < i32(l.count()) && (left -= std::exp(l(size_t(c(i))))) > 0) ++c(i);
    }
  }
};
struct reward {
  static void run(in<choices> c, out<rewards> r) { for (size_t i = 0; i < r.count(); ++i) r(i) = f32(c(i)) / 3; }
};
struct subtract_mean {
  static void run(in<rewards> r, out<advantages> a, out<mean_reward> m) {
    m() = 0;
    for (f32 x : r) m() += x / f32(r.count());
    for (size_t i = 0; i < a.count(); ++i) a(i) = r(i) - m();
  }
};
struct learn {                                                // d log p(c) / d logits = onehot(c) - p; the second term sums to zero here
  static void run(in<choices> c, in<advantages> a, setting<learning> s, next<logits> l) {
    for (size_t i = 0; i < c.count(); ++i) l(size_t(c(i))) += s->rate * a(i);
  }
};
using bandit = weft::graph<weft::feed<noise>, choose, reward, subtract_mean, learn, weft::keep<mean_reward>>;

int main() {
  auto step = weft::bind<bandit>(weft::cpu{}, sample{64}, learning{0.05f});
  std::fputs(weft::plan_text(step).c_str(), stdout);
  for (f32& x : step.view_of<logits>()) x = 0;
  f32 first = 0;
  for (int k = 0; k < 50; ++k) {
    auto const u = step.view_of<noise>();
    for (size_t i = 0; i < u.count(); ++i) u(i) = f32((i * 37 + size_t(k) * 11) % 64) / 64;
    step.step();
    if (k == 0) first = step.view_of<mean_reward>()();
  }
  f32 const last = step.view_of<mean_reward>()();
  std::printf("mean reward %.3f -> %.3f\n", double(first), double(last));
  return last > 0.9f ? 0 : 1;
}
