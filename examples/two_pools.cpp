// two_pools.cpp — the same graph on any numbers of devices: rollout cut over `spread`, training over `data`; which moves that needs,
// weft finds out. One binary: degrees are sizes given at bind. The CPU engine plays all devices, so every layout gives one result.
// Usage: two_pools [spread] [data]      default 3 2
#include <cstdio>
#include <cstdlib>
#include <weft/engine/cpu.hpp>
#include <weft/plan.hpp>
using weft::in, weft::out, weft::inout, weft::state, weft::next, weft::f32, weft::i32;

struct sample : weft::dim {};
struct position : weft::fixed<4> {};
struct parameter : weft::fixed<8> {};
struct minibatch : weft::part<sample> {};
struct spread : weft::axis {};
struct data : weft::axis {};
struct rollout : weft::pool<weft::split<spread, sample>> {};
struct trainer : weft::pool<weft::split<data, sample>> {};

struct prompts : weft::port<i32, sample> {};
struct tokens : weft::port<i32, sample, position> {};
struct rewards : weft::port<i32, sample> {};
struct weights : weft::port<i32, parameter> {};               // integers, so that no order of a sum shows
struct gradients : weft::sum_over<weft::port<i32, parameter>, sample> {};   // each device of the trainer holds a part of the sum
struct update_sizes : weft::port<i32, minibatch> {};

struct generate {
  static void run(in<prompts> p, state<weights> w, out<tokens> t) {
    for (size_t i = 0; i < p.count(); ++i)
      for (size_t k = 0; k < position::size; ++k) t(i, k) = (p(i) * 3 + i32(k) + w(size_t(p(i)) % parameter::size)) & 7;
  }
};
struct reward {                                               // any code, on the host
  static void run(in<tokens> t, out<rewards> r) {
    for (size_t i = 0; i < r.count(); ++i) {
      r(i) = 0;
      for (size_t k = 0; k < position::size; ++k) r(i) += t(i, k) & 1;
    }
  }
};
struct backward {
  static void run(in<tokens> t, in<rewards> r, out<gradients> g) {
    for (i32& x : g) x = 0;
    for (size_t i = 0; i < r.count(); ++i)
      for (size_t k = 0; k < position::size; ++k) g(size_t(t(i, k))) += r(i);
  }
};
struct update {
  static void run(in<gradients> g, next<weights> w, out<update_sizes> n) {
    n(0) = 0;
    for (size_t k = 0; k < w.count(); ++k) {
      w(k) += g(k);
      n(0) += g(k);
    }
  }
};
using graph = weft::graph<
    weft::feed<prompts>,
    weft::at<rollout, generate>,
    weft::at<weft::host, reward>,
    weft::at<trainer, weft::each<minibatch, backward, update>>,
    weft::keep<update_sizes>>;

i32 run(size_t spreads, size_t datas, bool print) {
  auto step = weft::bind<graph>(weft::cpu{}, sample{10}, minibatch{3}, spread{spreads}, data{datas});   // nothing has to divide
  if (print) std::fputs(weft::plan_text(step).c_str(), stdout);
  size_t const devices = spreads > datas ? spreads : datas;
  for (size_t d = 0; d < devices; ++d) {
    for (i32& w : step.view_of<weights>(d)) w = 1;
    for (i32 i = 0; i32& p : step.view_of<prompts>(d)) p = i++;
  }
  i32 all = 0;
  for (int k = 0; k < 5; ++k) {
    step.step();
    for (i32 n : step.view_of<update_sizes>()) all += n;
  }
  return all;
}
int main(int argc, char** argv) {
  size_t const spreads = argc > 1 ? size_t(std::atoi(argv[1])) : 3, datas = argc > 2 ? size_t(std::atoi(argv[2])) : 2;
  try {
    i32 const one = run(1, 1, false), many = run(spreads, datas, true);
    std::printf("sum of updates on one device %d, cut %zu and %zu ways %d\n", one, spreads, datas, many);
    return one == many ? 0 : 1;
  } catch (weft::refusal const& r) {
    std::fprintf(stderr, "two_pools: %s\n", r.what);
    return 2;
  }
}
