// Order and bytes: branches, in-place updates, sequences.
#include "weft/graph.hpp"
namespace {
using weft::in, weft::out, weft::inout, weft::scratch;
struct n : weft::dim {};
template <int> struct p : weft::port<float, n> {};
template <class In, class Out> struct map {
  static void run(in<In>, out<Out>) {}
};

// Branches may run at the same time: what one is done with, the other may not take.
using branches =
    weft::graph<weft::feed<p<0>>, map<p<0>, p<1>>, map<p<1>, p<2>>, map<p<0>, p<3>>, map<p<3>, p<4>>, weft::keep<p<2>>, weft::keep<p<4>>>;
static_assert(!branches::may_share<p<1>, p<3>>());
using chain = weft::graph<weft::feed<p<0>>, map<p<0>, p<1>>, map<p<1>, p<2>>, map<p<2>, p<3>>, map<p<3>, p<4>>, weft::keep<p<4>>>;
static_assert(chain::may_share<p<1>, p<3>>());

// x += f(norm(x)): norm feeds the update, so it reads the old x; keep reads the new one, wherever they are written.
struct add {
  static void run(in<p<2>>, inout<p<0>>) {}
};
using residual = weft::graph<weft::keep<p<0>>, add, map<p<1>, p<2>>, map<p<0>, p<1>>, weft::feed<p<0>>>;
static_assert(residual::plan.order == std::array<std::uint16_t, 6>{0, 5, 4, 3, 2, 1});

// Two updates of one port that no data orders: then<> does.
struct first {
  static void run(inout<p<0>>) {}
};
struct second {
  static void run(inout<p<0>>) {}
};
using sequence = weft::graph<weft::feed<p<0>>, weft::then<second, first>, weft::keep<p<0>>>;
static_assert(sequence::plan.order == std::array<std::uint16_t, 6>{0, 1, 2, 3, 4, 5});

// Scratch is alive with its stage only: it takes the bytes of an edge that is dead then, and another stage's scratch takes its bytes.
struct big {
  static void run(in<p<2>>, scratch<p<9>>, out<p<3>>) {}
};
struct big2 {
  static void run(in<p<3>>, scratch<p<9>>, out<p<4>>) {}
};
using rooms = weft::graph<weft::feed<p<0>>, map<p<0>, p<1>>, map<p<1>, p<2>>, big, big2, weft::keep<p<4>>>;
static_assert(rooms::may_share<p<1>, p<9>>() && !rooms::may_share<p<2>, p<9>>() && !rooms::may_share<p<3>, p<9>>());
//                          p0 p1 p2 p9 p3 p9' p4: p1 and both rooms at 1, p2 and p4 after them
static_assert(rooms::place({1, 1, 1, 1, 1, 1, 1}, 1) == std::array<size_t, 7>{0, 1, 2, 1, 3, 1, 4});
}  // namespace
