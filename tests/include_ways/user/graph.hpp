#pragma once
#include <weft/engine/cpu.hpp>
#include <weft/plan.hpp>
#include <weft/version.hpp>

struct item : weft::dim {};
struct x : weft::port<weft::f32, item> {};
struct y : weft::port<weft::f32, item> {};
struct twice {
  static void run(weft::in<x> a, weft::out<y> b) {
    for (std::size_t i = 0; i < a.count(); ++i) b(i) = 2 * a(i);
  }
};
using doubling = weft::graph<weft::feed<x>, twice, weft::keep<y>>;

inline double doubled_sum(std::size_t items) {
  auto step = weft::bind<doubling>(weft::cpu{}, item{items});
  for (float& v : step.view_of<x>()) v = 1;
  step.step();
  double sum = 0;
  for (float v : step.view_of<y>()) sum += double(v);
  return weft::plan_text(step).empty() ? 0 : sum;
}
