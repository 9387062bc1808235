// What bind and step promise: settings that the host may change, state that was loaded, ports that may be absent, streams, sizing dry.
#include "weft/engine/cpu.hpp"
#include "weft/step.hpp"
#include "refused.hpp"
#include <doctest/doctest.h>
namespace {
using weft::in, weft::out, weft::inout, weft::state, weft::next, weft::setting, weft::optional, weft::i32;
struct item : weft::dim {};
struct extra : weft::dim {};
struct x : weft::port<i32, item> {};
struct y : weft::port<i32, item> {};
struct bonus : weft::port<i32, item, extra> {};
struct notes : weft::port<i32, item> {};
struct memory_of : weft::port<i32, item> {};
struct factor {
  i32 by;
  i32 const* offset;
};  // a borrowed handle
struct scale {
  static void run(in<x> a, optional<in<bonus>> b, setting<factor> f, out<y> r, optional<out<notes>> n) {
    for (size_t i = 0; i < a.count(); ++i) {
      r(i) = a(i) * f->by + *f->offset + (b ? b(i, 0) : 0);
      if (n) n(i) = f->by;
    }
  }
};
struct remember {
  static void run(in<y> a, setting<factor> f, next<memory_of> m) {
    for (size_t i = 0; i < a.count(); ++i) m(i) = i32(std::uint32_t(m(i)) + std::uint32_t(a(i) * f->by));
  }
};
using plain = weft::graph<weft::feed<x>, scale, remember, weft::keep<y>>;
using full = weft::graph<weft::feed<x>, weft::feed<bonus>, scale, remember, weft::keep<y>, weft::keep<notes>>;
struct peek {
  static void run(optional<state<memory_of>> m, in<x> a, out<y> r) {
    for (size_t i = 0; i < a.count(); ++i) r(i) = m ? m(i) : -1;
  }
};
struct keep_it {
  static void run(in<y>, next<memory_of>) {}
};
using without = weft::graph<weft::feed<x>, peek, weft::keep<y>>;
using with = weft::graph<weft::feed<x>, peek, keep_it>;
}  // namespace

TEST_CASE("settings are shared by all stages and may change between steps") {
  i32 offset = 100;
  auto s = weft::bind<plain>(weft::cpu{}, item{3}, factor{2, &offset});
  for (size_t i = 0; i < 3; ++i) {
    s.view_of<x>()(i) = i32(i);
    s.view_of<memory_of>()(i) = 0;
  }
  s.step();
  CHECK(s.view_of<y>()(2) == 104);
  CHECK(s.view_of<memory_of>()(2) == 208);
  s.setting<factor>().by = 3;
  offset = 10;
  s.step();
  CHECK(s.view_of<y>()(2) == 16);
  CHECK(s.view_of<memory_of>()(2) == 208 + 48);
}

TEST_CASE("state must be loaded before the first step") {
  i32 const offset = 0;
  auto s = weft::bind<plain>(weft::cpu{}, item{3}, factor{2, &offset});
  for (i32& v : s.view_of<x>()) v = 1;
  CHECK(refused([&] { s.step(); }) ==
        "weft::step: state memory_of was never loaded: fill its view_of before the first step, or say loaded");
  s.loaded<memory_of>();
  CHECK(refused([&] { s.step(); }).empty());
}

TEST_CASE("optional ports are there when somebody meets them") {
  i32 const offset = 0;
  auto a = weft::bind<plain>(weft::cpu{}, item{3}, factor{2, &offset});  // the size of `extra` is not needed
  auto b = weft::bind<full>(weft::cpu{}, item{3}, extra{1}, factor{2, &offset});
  a.loaded<memory_of>();
  b.loaded<memory_of>();
  for (size_t i = 0; i < 3; ++i) {
    a.view_of<x>()(i) = b.view_of<x>()(i) = i32(i);
    b.view_of<bonus>()(i, 0) = 1000;
  }
  a.step();
  b.step();
  for (size_t i = 0; i < 3; ++i) {
    CHECK(a.view_of<y>()(i) == i32(2 * i));
    CHECK(b.view_of<y>()(i) == i32(2 * i) + 1000);
    CHECK(b.view_of<notes>()(i) == 2);
  }
  CHECK(a.view_of<notes>().data == nullptr);
  auto c = weft::bind<without>(weft::cpu{}, item{1});
  auto d = weft::bind<with>(weft::cpu{}, item{1});
  d.view_of<memory_of>()(0) = 7;
  c.view_of<x>()(0) = d.view_of<x>()(0) = 0;
  c.step();
  d.step();
  CHECK(c.view_of<y>()(0) == -1);
  CHECK(d.view_of<y>()(0) == 7);
}

// ---- streams -------------------------------------------------------------------------------------------------
namespace {
struct wide : weft::dim {};
struct data : weft::axis {};
struct mini : weft::part<item> {};
struct trainer : weft::pool<weft::split<data, item>> {};
struct tokens : weft::port<i32, item, wide> {};
struct scores : weft::port<i32, item> {};
struct calls : weft::port<i32> {};
struct produce {
  static void run(in<x> a, out<tokens> t) {
    for (size_t i = 0; i < a.count(); ++i)
      for (size_t k = 0; k < t.extent<wide>(); ++k) t(i, k) = a(i) + i32(k);
  }
};
struct counter {
  i32* n;
};
struct score {
  static void run(weft::stream<tokens> t, in<x> a, setting<counter> c, out<scores> s) {
    ++*c->n;
    for (size_t i = 0; i < s.count(); ++i) {
      s(i) = a(i);
      for (size_t k = 0; k < t.extent<wide>(); ++k) s(i) += t(i, k);
    }
  }
};
template <class Pool> using streamed = weft::graph<weft::feed<x>, weft::at<Pool, weft::each<mini, produce, score>>, weft::keep<scores>>;
}  // namespace

TEST_CASE("a streamed stage gives the same whatever the blocks") {
  for (size_t n : {0, 1, 7})
    for (size_t d : {1, 2})
      for (size_t parts : {1, 2})
        for (size_t block : {0, 1, 2, 3, 9}) {
          i32 calls = 0;
          auto s = weft::bind<streamed<trainer>>(weft::cpu{{}, true, block}, item{n}, wide{3}, data{d}, mini{parts}, counter{&calls});
          for (size_t k = 0; k < d; ++k)
            for (size_t i = 0; i < n; ++i) s.view_of<x>(k)(i) = i32(i);
          s.step();
          for (size_t i = 0; i < n; ++i) CHECK(s.view_of<scores>()(i) == 4 * i32(i) + 3);
          if (block == 0) CHECK(calls == i32(d * parts));
          if (block == 1) CHECK(calls == i32(n));
        }
}

// ---- without types, and without memory -----------------------------------------------------------------------
TEST_CASE("a step without its type") {
  i32 const offset = 5;
  auto const s = weft::make_step<plain, without>(weft::cpu{}, item{2}, factor{2, &offset});
  s->view_of<x>()(0) = 1;
  s->view_of<x>()(1) = 2;
  CHECK(refused([&] { s->step(); }) != "");
  s->loaded<memory_of>();
  s->step();
  CHECK(s->view_of<y>()(1) == 9);
  s->setting<factor>().by = 3;
  s->step();
  CHECK(s->view_of<y>()(1) == 11);
  CHECK(!s->has<bonus>());
  CHECK(refused([&] { s->view_of<tokens>(); }) == "weft::step: there is no port tokens in this graph");
  CHECK(refused([&] { s->setting<counter>(); }) == "weft::step: there is no setting counter in this graph");
  CHECK(refused([&] { s->step(2); }) == "weft::step: there is no graph 2 to run among 2");
}

TEST_CASE("dry binds give the same plan and no memory") {
  i32 calls = 0;
  auto const args = [&](auto on) { return weft::make_step<streamed<trainer>>(on, item{1000}, wide{3}, data{3}, mini{4}, counter{&calls}); };
  auto const a = args(weft::cpu{}), b = args(weft::dry{});
  CHECK(a->plan() == b->plan());
  CHECK(a->memory()[0].arena == b->memory()[0].arena);
  CHECK(!b->has<x>());
  CHECK(refused([&] { b->step(); }).find("dry") != std::string::npos);
  auto const huge = weft::make_step<streamed<trainer>>(weft::dry{}, item{size_t(1) << 40}, wide{3}, data{3}, mini{4}, counter{&calls});
  CHECK(huge->memory()[0].arena > size_t(1) << 42);
}

namespace {
struct small : weft::cpu {
  void* alloc(size_t n, bool on_host) { return n > 4096 ? throw std::bad_alloc{} : weft::cpu::alloc(n, on_host); }
};
}  // namespace

TEST_CASE("memory that cannot be had is told in numbers") {
  i32 calls = 0;
  auto const make = [&](size_t n) {
    return weft::make_step<streamed<trainer>>(small{}, item{n}, wide{3}, data{2}, mini{4}, counter{&calls});
  };
  CHECK(refused([&] { make(100); }).empty());
  CHECK(refused([&] { make(1000); }) == "weft::bind: no memory for 27648 bytes on all_devices: arena 13824 and state 0, 2 times");
}
