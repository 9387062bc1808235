// The printed plan: order, segments, arena with lifetimes; DOT and Mermaid say the same in their languages.
#include "ppo.hpp"
#include "weft/engine/cpu.hpp"
#include "weft/plan.hpp"
#include <doctest/doctest.h>
#include <algorithm>
namespace {
using weft::in, weft::out, weft::inout, weft::state, weft::next, weft::scratch, weft::i32;
struct n : weft::dim {};
struct turn : weft::dim {};
struct data : weft::axis {};
struct a : weft::port<i32, n> {};
struct b : weft::port<i32, n> {};
struct c : weft::port<i32, n> {};
struct w : weft::port<i32, n> {};
struct room : weft::port<i32, n> {};
struct over : weft::port<i32> {};
struct first {
  static void run(in<a>, state<w>, scratch<room>, out<b>) {}
};
struct grow {
  static void run(inout<b>, out<over> o) { o() = 1; }
};
struct last {
  static void run(in<b>, next<w>, out<c>) {}
};
struct trainer : weft::pool<weft::split<data, n>> {};
using graph = weft::graph<weft::feed<a>, first, weft::each<weft::until<turn, over>, grow>, weft::at<weft::host, last>, weft::keep<c>>;
using cut = weft::graph<weft::feed<a>, weft::at<trainer, first>, weft::at<trainer, weft::each<weft::until<turn, over>, grow>>,
                        weft::at<weft::host, last>, weft::keep<c>>;

size_t count(std::string const& text, char const* what) {
  size_t k = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++k;
  return k;
}
}  // namespace

TEST_CASE("the plan as text") {
  auto s = weft::bind<graph>(weft::dry{}, n{10}, turn{3});
  CHECK(weft::plan_text(s) ==
        R"(order
   1 send w from host to local
   2 feed<a>
   3 first  @ local
   4 loop<turn> x at most 3
   5   grow  @ local
   6 send b from local to host
   7 last  @ host
   8 send c from host to local
   9 keep<c>
segments
   0 graph: send w from host to local, first, loop<turn>, send b from local to host
   1 host  after 0: last
   2 graph after 1: send c from host to local
arena on all_devices: 1280 bytes (at least 1280) and 0 of state, on each of 1
      offset      bytes  alive
           0         40   0-9    a
         256         40   3-3    room, scratch of first
         512         40   3-6    b
         256          4   5-5    over
         768         40   1-3    w, moved
        1024         40   0-9    c, moved
arena on host_memory: 512 bytes (at least 512) and 256 of state, on each of 1
      offset      bytes  alive
           0         40   7-8    c
         256         40   6-7    b, moved
         512         40  always  w
)");
}

TEST_CASE("the plan as pictures") {
  auto s = weft::bind<graph>(weft::dry{}, n{10}, turn{3});
  CHECK(weft::plan_text(s, weft::plan_form::dot) ==
        R"(digraph plan {
n7 [label="send w from host to local", shape=cds];
n1 [label="feed<a>", shape=plain];
n2 [label="first @ local", shape=box];
subgraph cluster_3 {
label="loop<turn> x at most 3";
n3 [label="until", shape=circle];
n4 [label="grow @ local", shape=box];
}
n8 [label="send b from local to host", shape=cds];
n5 [label="last @ host", shape=box];
n9 [label="send c from host to local", shape=cds];
n6 [label="keep<c>", shape=plain];
s2 [label="w", shape=cylinder];
n1 -> n2 [label="a"];
n7 -> n2 [label="w"];
n4 -> n3 [label="over"];
n2 -> n4 [label="b"];
n8 -> n5 [label="b"];
n9 -> n6 [label="c"];
n4 -> n8 [label="b"];
n5 -> n9 [label="c"];
n5 -> s2 [label="next", style=dashed];
s2 -> n7 [label="state", style=dashed];
}
)");
  std::string const m = weft::plan_text(s, weft::plan_form::mermaid);
  CHECK(m.find("subgraph l3[\"loop&lt;turn&gt; x at most 3\"]") != std::string::npos);
}

TEST_CASE("a picture has every stage, every edge, and no idle move") {
  using namespace ppo_test;
  struct rollout : pool<split<spread, sample>> {};
  auto const make = [](size_t spreads) {
    return weft::bind<ppo<rollout>>(weft::dry{}, sample{8}, position{6}, epoch{2}, minibatch{4}, microbatch{6}, row{4}, lane{1},
                                    spread{spreads}, config<actor>{2, 4, 8}, config<reference>{2, 4, 8}, config<critic>{1, 4, 8},
                                    sampling{}, kl_penalty{}, discount{}, clip{}, budget{}, learning{});
  };
  auto one = make(1), two = make(2);
  for (auto form : {weft::plan_form::dot, weft::plan_form::mermaid}) {
    std::string const x = weft::plan_text(one, form), y = weft::plan_text(two, form);
    CHECK(count(x, "scatter") == 0);
    CHECK(count(y, "scatter prompts") == 1);
    CHECK(count(x, "gather") == 0);
    CHECK(count(y, "gather ") == 5);  // tokens and lengths to the trainer and to the host, logprobs to the trainer
    CHECK(count(x, "idle") == 0);
    CHECK(count(x, "generate") == 1);
    CHECK(count(x, form == weft::plan_form::dot ? " -> " : "--") + count(x, "-.->") > 50);
  }
  std::string const dot = weft::plan_text(two, weft::plan_form::dot);
  CHECK(count(dot, "{") == count(dot, "}"));
  CHECK(count(dot, "subgraph") == 3);
}

TEST_CASE("the memory map adds up") {
  auto s = weft::bind<graph>(weft::dry{}, n{1000}, turn{3});
  for (auto const& map : weft::memory_map(s)) {
    size_t end = 0, state = 0;
    for (auto const& line : map.buffers) {
      if (line.state) state += (line.bytes + 255) / 256 * 256;
      else end = std::max(end, line.offset + line.bytes);
      CHECK(line.from <= line.to);
    }
    CHECK((end + 255) / 256 * 256 == map.arena);
    CHECK(state == map.state);
    CHECK(map.least <= map.arena);
  }
}
