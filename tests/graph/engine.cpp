// The CPU engine: nothing is allocated in a step, poison finds what was not written, time is told by node.
#include "ppo.hpp"
#include "weft/engine/cpu.hpp"
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <new>
#include <vector>
namespace {
size_t allocations = 0;
}
[[gnu::noinline]] void* operator new(size_t n) {
  ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {
using namespace ppo_test;
struct rollout : pool<split<spread, sample>> {};
struct trainer : pool<split<lane, sample>> {};
using step = ppo<rollout, trainer>;
auto make(cpu on) {
  return bind<step>(on, sample{16}, position{6}, epoch{2}, minibatch{4}, microbatch{6}, row{4}, lane{2}, spread{3}, config<actor>{2, 4, 8},
                    config<reference>{2, 4, 8}, config<critic>{1, 4, 8}, sampling{}, kl_penalty{}, discount{}, clip{}, budget{},
                    learning{});
}
template <class B> void fill(B& s) {
  for (size_t d = 0; d < 3; ++d) {
    for (i32& x : s.template view_of<prompts>(d)) x = 3;
    for (i32& x : s.template view_of<epoch_seed>(d)) x = 1;
    for (f32& x : s.template view_of<weights<actor>>(d)) x = 0.5f;
    for (f32& x : s.template view_of<weights<reference>>(d)) x = 0.5f;
    for (f32& x : s.template view_of<weights<critic>>(d)) x = 0.5f;
    for (f32& x : s.template view_of<moments<actor>>(d)) x = 0;
    for (f32& x : s.template view_of<moments<critic>>(d)) x = 0;
  }
}
// A stage that forgets half of what it should write, and one that reads its scratch before writing it.
struct n : dim {};
struct half : port<f32, n> {};
struct room : port<f32, n> {};
struct copy : port<f32, n> {};
struct forget {
  static void run(out<half> h) {
    for (size_t i = 0; i < h.count() / 2; ++i) h(i) = 1;
  }
};
struct peek {
  static void run(scratch<room> r, in<half> h, out<copy> c) {
    for (size_t i = 0; i < c.count(); ++i) c(i) = i % 2 ? r(i) : h(i);
  }
};
}  // namespace

TEST_CASE("a step allocates nothing") {
  auto s = make(cpu{});
  fill(s);
  size_t const before = allocations;
  CHECK(before > 0);
  for (int k = 0; k < 3; ++k) s.step();
  CHECK(allocations == before);
}

TEST_CASE("poison shows what nobody wrote") {
  auto s = bind<graph<forget, peek, keep<half>, keep<copy>>>(cpu{{}, true}, n{8});
  s.step();
  for (size_t i = 0; i < 8; ++i) {
    CHECK(std::isnan(s.view_of<half>()(i)) == (i >= 4));
    CHECK(std::isnan(s.view_of<copy>()(i)) == (i >= 4 || i % 2));
  }
}

TEST_CASE("time by node") {
  std::vector<double> seconds(step::size);
  auto s = make(cpu{});
  fill(s);
  s.executor().seconds = seconds.data();
  s.step();
  auto const& p = s.program_of<step>();
  for (size_t k = 0; k < p.n; ++k) {
    bool const works = !p.nodes[k].loop && !p.nodes[k].pinned && p.nodes[k].what != move::idle;
    CHECK((seconds[k] > 0) == works);
  }
}
