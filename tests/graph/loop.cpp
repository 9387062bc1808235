// Loops: slices, nested parts of one dim, counts known late, sums over turns, buffers of one slice, shares that differ by one.
#include "weft/weft.hpp"
#include "weft/engine/cpu.hpp"
#include "refused.hpp"
#include <doctest/doctest.h>
#include <vector>
namespace {
using weft::in, weft::out, weft::inout, weft::i32, weft::state, weft::next;
struct item : weft::dim {};
struct wide : weft::dim {};
struct again : weft::dim {};
struct mini : weft::part<item> {};
struct micro : weft::part<item> {};
struct x : weft::port<i32, item> {};        // fed
struct y : weft::port<i32, item, wide> {};  // only used inside: one slice of it exists
struct z : weft::port<i32, item> {};        // written in slices, read whole
struct used : weft::port<i32, mini> {};     // how many micro-batches a mini-batch has
struct total : weft::port<i32, mini> {};    // a sum over micro-batches: zero starts it, add adds
struct count : weft::port<i32> {};          // state: how often the inner loop ran
struct limit {
  i32 turns;
};
struct choose {
  static void run(weft::setting<limit> l, out<used> n) { n(0) = l->turns; }
};
struct spread {
  static void run(in<x> a, out<y> b) {
    for (size_t i = 0; i < a.count(); ++i)
      for (size_t k = 0; k < b.extent<wide>(); ++k) b(i, k) = a(i);
  }
};
struct gather {
  static void run(in<y> b, out<z> c) {
    for (size_t i = 0; i < c.count(); ++i) {
      c(i) = 0;
      for (size_t k = 0; k < b.extent<wide>(); ++k) c(i) += b(i, k);
    }
  }
};
struct tick {
  static void run(next<count> n) { ++n(); }
};
struct zero {
  static void run(out<total> t) { t(0) = 0; }
};
struct add {
  static void run(in<x> a, inout<total> t) {
    for (i32 i : a) t(0) += i;
  }
};
using step = weft::graph<weft::feed<x>, weft::each<mini, weft::each<micro, spread, gather>>, weft::each<again, weft::each<mini, tick>>,
                         weft::each<mini, choose, zero, weft::each<weft::upto<micro, used>, add>>, weft::keep<z>, weft::keep<total>>;
// x is read by every turn: although its reader comes before y's writer in a turn, they may not share bytes.
struct w : weft::port<i32, item> {};
struct early {
  static void run(in<w>, out<y>) {}
};
struct late {
  static void run(in<y>, out<total>) {}
};
struct make {
  static void run(in<x>, out<w>) {}
};
using carried = weft::graph<weft::feed<x>, make, weft::each<mini, early, late>, weft::keep<total>>;
static_assert(!carried::may_share<w, total>() && !carried::may_share<w, y>());

size_t begin(size_t n, size_t m, size_t i) { return i * (n / m) + (i < n % m ? i : n % m); }  // of share i of m
}  // namespace

TEST_CASE("loops cut any size into any parts") {
  for (size_t n : {0, 1, 5, 7, 23, 24, 25})
    for (size_t minis : {1, 2, 3, 7})
      for (size_t micros : {1, 2, 4})
        for (i32 turns = 0; turns <= i32(micros); ++turns) {
          CAPTURE(n);
          CAPTURE(minis);
          CAPTURE(micros);
          CAPTURE(turns);
          auto s = weft::bind<step>(weft::cpu{{}, true}, item{n}, wide{5}, again{2}, mini{minis}, micro{micros}, limit{turns});
          for (size_t i = 0; i < n; ++i) s.view_of<x>()(i) = i32(i);
          s.view_of<count>()() = 0;
          s.step();
          for (size_t i = 0; i < n; ++i) CHECK(s.view_of<z>()(i) == 5 * i32(i));
          CHECK(s.view_of<count>()() == i32(2 * minis));
          size_t const most = ((n + minis - 1) / minis + micros - 1) / micros;  // one slice is enough
          CHECK(s.program_of<step>().bytes[step::buffer_of<y>()] == most * 5 * sizeof(i32));
          for (size_t m = 0; m < minis; ++m) {
            size_t const from = begin(n, minis, m), size = begin(n, minis, m + 1) - from;
            i32 sum = 0;
            for (size_t k = 0; k < begin(size, micros, size_t(turns)); ++k) sum += i32(from + k);
            CHECK(s.view_of<total>()(m) == sum);
          }
        }
}

TEST_CASE("a count read at run time is checked") {
  auto s = weft::bind<step>(weft::cpu{}, item{24}, wide{5}, again{2}, mini{3}, micro{4}, limit{4});
  for (i32& i : s.view_of<x>()) i = 1;
  s.view_of<count>()() = 0;
  s.step();
  s.setting<limit>().turns = 5;
  CHECK(refused([&] { s.step(); }) == "weft::step: used says 5 turns of loop<micro>, which has 4 at most");
  s.setting<limit>().turns = -1;
  CHECK(refused([&] { s.step(); }) == "weft::step: used says -1 turns of loop<micro>, which has 4 at most");
  s.setting<limit>().turns = 1;
  s.step();  // and the step goes on after an error
}

TEST_CASE("sizes that cannot be are refused with numbers") {
  CHECK(refused([] { weft::bind<step>(weft::cpu{}, item{24}, wide{5}, again{2}, mini{0}, micro{4}, limit{}); }) ==
        "weft::bind: mini is 0: a part cuts into one share at least");
  size_t const huge = size_t(1) << 62;
  CHECK(refused([&] {
          weft::bind<step>(weft::dry{}, item{huge}, wide{5}, again{2}, mini{3}, micro{4}, limit{});
        }).find("weft::bind: the bytes of x are more than") == 0);
}

// ---- until -------------------------------------------------------------------------------------------------
namespace {
struct turn : weft::dim {};
struct start : weft::port<i32> {};
struct value : weft::port<i32> {};
struct done : weft::port<i32> {};
struct trace : weft::port<i32, turn> {};
struct log_room : weft::port<i32, wide> {};
struct begin_at {
  static void run(in<start> s, out<value> v) { v() = s(); }
};
struct halve {
  static void run(inout<value> v, out<trace> t) {
    t(0) = v();
    v() /= 2;
  }
};
struct look {
  static void run(in<value> v, weft::scratch<log_room> r, out<done> d) {
    for (i32& i : r) i = 7;
    d() = v() == 0;
  }
};
struct after_it {
  static void run(weft::scratch<log_room> r, in<done>) {
    for (i32& i : r) i = 7;
  }
};  // would overwrite a flag that shared its bytes
using halving = weft::graph<weft::feed<start>, begin_at, weft::each<weft::until<turn, done>, halve, look, after_it>, weft::keep<value>,
                            weft::keep<trace>>;
}  // namespace

TEST_CASE("until: a loop ends from inside, or at its most") {
  for (auto [from, turns] : {std::pair{1, 1}, {0, 1}, {9, 4}, {63, 6}, {64, 7}, {1 << 20, 10}}) {
    auto s = weft::bind<halving>(weft::cpu{{}, true}, turn{10}, wide{4});
    s.view_of<start>()() = from;
    s.step();
    CHECK(s.view_of<value>()() == from >> turns);
    for (int i = 0; i < turns; ++i) CHECK(s.view_of<trace>()(size_t(i)) == from >> i);
    if (turns < 10) CHECK(s.view_of<trace>()(size_t(turns)) == -1);  // poison: that turn did not run
  }
}

// ---- the host inside a loop ---------------------------------------------------------------------------------
namespace {
struct device_only : weft::pool<> {
  using devices = struct gpu;
};
struct asked : weft::port<i32, item> {};
struct answer : weft::port<i32, item> {};
struct result : weft::port<i32, item> {};
struct ask {
  static void run(in<x> a, out<asked> q) {
    for (size_t i = 0; i < a.count(); ++i) q(i) = a(i) + 1;
  }
};
struct reply {
  static void run(in<asked> q, out<answer> a) {
    for (size_t i = 0; i < a.count(); ++i) a(i) = 10 * q(i);
  }
};
struct take {
  static void run(in<answer> a, out<result> r) {
    for (size_t i = 0; i < a.count(); ++i) r(i) = a(i) + 1;
  }
};
using dialogue =
    weft::graph<weft::at<device_only, weft::feed<x>, weft::each<mini, ask, weft::at<weft::host, reply>, take>, weft::keep<result>>>;
static_assert(dialogue::moves.n == 2);  // to the host and back, a slice each turn
}  // namespace

TEST_CASE("a host stage inside a loop") {
  for (size_t minis : {1, 2, 3, 5}) {
    auto s = weft::bind<dialogue>(weft::cpu{{}, true}, item{11}, mini{minis});
    for (size_t i = 0; i < 11; ++i) s.view_of<x>()(i) = i32(i);
    s.step();
    for (size_t i = 0; i < 11; ++i) CHECK(s.view_of<result>()(i) == 10 * (i32(i) + 1) + 1);
    CHECK(s.memory_map().regions[1].arena < 2 * 256 + 1);
  }
}

// ---- slices of several dims, stored whole; a flag of every turn ------------------------------------------------
namespace {
struct flags : weft::port<i32, turn> {};
struct table : weft::port<i32, turn, wide> {};
struct rows_of : weft::port<i32, item, wide> {};
struct fill {
  static void run(in<x> a, out<rows_of> r) {
    for (size_t i = 0; i < a.count(); ++i)
      for (size_t k = 0; k < r.extent<wide>(); ++k) r(i, k) = 100 * a(i) + i32(k);
  }
};
using filling = weft::graph<weft::feed<x>, weft::each<mini, weft::each<micro, fill>>, weft::keep<rows_of>>;
struct rise {
  static void run(in<start> s, inout<value> v, out<table> t, out<flags> f) {
    for (i32& n : t) n = v();
    f(0) = ++v() >= s() ? v() : 0;
  }
};
struct zero_value {
  static void run(out<value> v) { v() = 0; }
};
using counting = weft::graph<weft::feed<start>, zero_value, weft::each<weft::until<turn, flags>, rise>, weft::keep<table>,
                             weft::keep<flags>, weft::keep<value>>;
}  // namespace

TEST_CASE("slices of ports with more dims are blocks of the whole") {
  for (size_t n : {1, 7, 24})
    for (size_t minis : {1, 3})
      for (size_t micros : {1, 2, 4}) {
        auto s = weft::bind<filling>(weft::cpu{{}, true}, item{n}, wide{3}, mini{minis}, micro{micros});
        for (size_t i = 0; i < n; ++i) s.view_of<x>()(i) = i32(i);
        s.step();
        for (size_t i = 0; i < n; ++i)
          for (size_t k = 0; k < 3; ++k) CHECK(s.view_of<rows_of>()(i, k) == i32(100 * i + k));
      }
}

TEST_CASE("until reads the flag of its own turn") {
  for (i32 end : {1, 3, 6}) {
    auto s = weft::bind<counting>(weft::cpu{{}, true}, turn{6}, wide{2});
    s.view_of<start>()() = end;
    s.step();
    for (i32 t = 0; t < 6; ++t) {
      CHECK(s.view_of<flags>()(size_t(t)) == (t + 1 < end ? 0 : t + 1 == end ? end : -1));
      CHECK(s.view_of<table>()(size_t(t), 1) == (t < end ? t : -1));
    }
  }
}
