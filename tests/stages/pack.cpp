// Orders and micro-batches: what must hold for any lengths, any budget and any number of devices.
#include <doctest/doctest.h>
#include <algorithm>
#include <random>
#include <set>
#include <vector>
#include <weft/engine/cpu.hpp>
#include <weft/stages/pack.hpp>

using namespace weft;
using namespace weft::rl;

namespace {
using packing = graph<feed<order<actor>>, feed<prompt_lengths<training>>, feed<lengths<training>>, feed<included>, pack<actor>,
                      count_tokens<actor>, keep<bin_order<actor>>, keep<bins<actor>>, keep<bin_count<actor>>, keep<tallies<actor>>>;
struct problem {
  size_t prompts, group, lanes;
  i32 budget, limit;
  std::vector<i32> order, prompt_lengths, lengths, included;
  i32 forward(i32 s) const {
    return included[size_t(s)] && lengths[size_t(s)] ? prompt_lengths[size_t(s) / group] + lengths[size_t(s)] - 1 : 0;
  }
};
problem random_problem(std::mt19937& random, size_t lanes) {
  auto const below = [&](unsigned n) { return i32(random() % n); };
  problem p{1 + random() % 9, 1 + random() % 5, lanes, 1 + below(90), below(3) ? 0 : 1 + below(4), {}, {}, {}, {}};
  for (size_t i = 0; i < p.prompts; ++i) p.prompt_lengths.push_back(1 + below(20));
  for (size_t s = 0; s < p.prompts * p.group; ++s) {
    p.lengths.push_back(below(8) ? 1 + below(40) : 0);
    p.included.push_back(below(6) > 0);
    p.order.push_back(i32(s));
  }
  std::shuffle(p.order.begin(), p.order.end(), random);
  p.order.resize(random() % (p.order.size() + 1));  // a mini-batch: any part of the samples, perhaps none
  return p;
}
struct schedule {
  std::vector<i32> place;   // [slot, lane]
  std::vector<range> bins;  // [microbatch, lane]
  i32 used, tokens, sequences;
};
schedule schedule_of(problem const& p, bool poison = true) {
  auto g = bind<packing>(cpu{}, prompt<training>{{p.prompts}}, group<training>{{p.group}}, slot{{p.order.size()}}, lane{{p.lanes}},
                         token_budget<actor>{p.budget, p.limit, 0});
  g.executor().poison = poison;
  auto const put = [&]<class P>(P*, auto const& v) { std::copy(v.begin(), v.end(), g.template view_of<P>().data); };
  put((order<actor>*)nullptr, p.order), put((prompt_lengths<training>*)nullptr, p.prompt_lengths);
  put((lengths<training>*)nullptr, p.lengths), put((included*)nullptr, p.included);
  g.step();
  auto const o = g.view_of<bin_order<actor>>();
  auto const b = g.view_of<bins<actor>>();
  auto const t = g.view_of<tallies<actor>>();
  return {{o.begin(), o.end()}, {b.begin(), b.end()}, g.view_of<bin_count<actor>>()(), t(0), t(1)};
}
}  // namespace

TEST_CASE("every sample that counts stands in one bin of its device, in order, and no bin is too large or closed too soon") {
  std::mt19937 random(1);
  size_t crowded = 0, alone = 0, empty = 0;
  for (int round = 0; round < 1500; ++round) {
    auto const p = random_problem(random, 1 + size_t(round % 5));
    auto const s = schedule_of(p);
    CAPTURE(round);
    std::multiset<i32> seen, wanted;
    i32 tokens = 0, most = 0;
    for (i32 x : p.order)
      if (p.forward(x)) wanted.insert(x), tokens += p.lengths[size_t(x)];
    for (size_t l = 0; l < p.lanes; ++l) {
      share const mine{p.prompts, p.lanes, l};
      i32 const first = i32(mine.begin * p.group), end = i32(mine.end * p.group);
      std::vector<i32> here;
      i32 at = 0, used = 0, before = 0, before_samples = 0;
      for (size_t k = 0; k < p.order.size(); ++k) {
        range const b = s.bins[k * p.lanes + l];
        if (b.begin == b.end) continue;
        REQUIRE((b.begin == at && b.end > b.begin && b.end <= i32(p.order.size())));  // one after the other, without a gap
        REQUIRE(i32(k) == used++);
        i32 sum = 0;
        for (; at < b.end; ++at) {
          i32 const x = first + s.place[size_t(at) * p.lanes + l];
          REQUIRE((x >= first && x < end));  // the device's own
          here.push_back(x);
          sum += p.forward(x);
          if (at == b.begin && used > 1) CHECK((before + p.forward(x) > p.budget || before_samples == p.limit));
        }
        i32 const count = b.end - b.begin;
        CHECK((sum <= p.budget || count == 1));
        CHECK((p.limit == 0 || count <= p.limit));
        crowded += count > 1, alone += sum > p.budget;
        before = sum, before_samples = count;
      }
      seen.insert(here.begin(), here.end());
      std::vector<i32> in_order;  // as the order has them
      for (i32 x : p.order)
        if (x >= first && x < end && p.forward(x)) in_order.push_back(x);
      CHECK(here == in_order);
      most = std::max(most, used);
    }
    CHECK(seen == wanted);
    CHECK(s.used == most);
    CHECK(s.tokens == tokens);
    CHECK(s.sequences == i32(wanted.size()));
    empty += wanted.empty();
    if (wanted.empty()) CHECK((s.used == 0 && s.tokens == 0 && s.sequences == 0));
  }
  CHECK((crowded > 100 && alone > 100 && empty > 10));
}
TEST_CASE("a schedule is a function of lengths and order alone") {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    auto const p = random_problem(random, 1 + size_t(round % 3));
    auto const a = schedule_of(p, true), b = schedule_of(p, false);
    CHECK((a.used == b.used && a.tokens == b.tokens && a.sequences == b.sequences));
    for (size_t i = 0; i < a.bins.size(); ++i) {
      CHECK((a.bins[i].begin == b.bins[i].begin && a.bins[i].end == b.bins[i].end));
      size_t const l = i % p.lanes;
      for (i32 k = a.bins[i].begin; k < a.bins[i].end; ++k) CHECK(a.place[size_t(k) * p.lanes + l] == b.place[size_t(k) * p.lanes + l]);
    }
  }
}

namespace {
using shuffling = graph<feed<epoch_seed<actor>>, shuffle<actor>, written_order<scoring>, keep<order<actor>>, keep<order<scoring>>>;
std::vector<i32> shuffled(size_t n, std::uint32_t seed) {
  auto g = bind<shuffling>(cpu{}, epoch<actor>{{1}}, slot{{n}});
  g.view_of<epoch_seed<actor>>()(0) = seed;
  g.step();
  auto const written = g.view_of<order<scoring>>();
  for (size_t i = 0; i < n; ++i) CHECK(written(i) == i32(i));
  auto const o = g.view_of<order<actor>>();
  return {o.begin(), o.end()};
}
}  // namespace
TEST_CASE("an epoch's order is a permutation: seed 0 the written one, others all different, each as likely as the next") {
  for (size_t n : {1, 2, 7, 64, 1000}) {
    std::vector<i32> written(n);
    for (size_t i = 0; i < n; ++i) written[i] = i32(i);
    CHECK(shuffled(n, 0) == written);
    std::set<std::vector<i32>> all;
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
      auto o = shuffled(n, seed);
      CHECK(o == shuffled(n, seed));
      all.insert(o);
      std::sort(o.begin(), o.end());
      CHECK(o == written);
    }
    if (n >= 64) CHECK(all.size() == 19);
  }
  size_t const n = 5, rounds = 5000;
  std::vector<double> times(n * n);  // how often i stands at k
  for (std::uint32_t seed = 1; seed <= rounds; ++seed) {
    auto const o = shuffled(n, seed);
    for (size_t k = 0; k < n; ++k) ++times[size_t(o[k]) * n + k];
  }
  double chi = 0;
  for (double t : times) chi += (t - rounds / double(n)) * (t - rounds / double(n)) / (rounds / double(n));
  CHECK(chi < 45);  // 16 degrees of freedom: 39 once in a thousand
}
