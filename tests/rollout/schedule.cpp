// What is computed, counted and told; what happens when pages, slots or numbers run out.
#include <limits>

#include "lab.hpp"

extern std::size_t lab_allocations;  // allocations.cpp

using namespace weft;
using namespace lab;
using rollout::finish;

TEST_CASE("a prompt that n samples share is prefilled once") {
  tiny<float> const m;
  job<float> const j{4, 8, {10, 64, 100, 3}};
  u64 const tokens = 10 + 64 + 100 + 3;
  for (i32 slots : {1, 3, 8, 64}) {
    auto const r = run<float>(m, j, settings_for(slots, 200));
    CHECK(r.count.prefilled == tokens);
    CHECK(r.count.saved == 7 * tokens);
    CHECK(r.count.replayed == 0);
    CHECK(r.count.preemptions == 0);
    CHECK(r.count.decoded == u64(std::accumulate(r.lengths.begin(), r.lengths.end(), 0)));
    CHECK(r.count.mean_busy() <= slots);
  }
  // One row a step: the steps are the rows, and one for the first token of each sample whose prompt is there already.
  auto const r = run<float>(m, j, settings_for(1, 200, 1));
  CHECK(r.count.steps == tokens + (r.count.decoded - 32) + 28);
}

TEST_CASE("slots are refilled while others run") {
  tiny<float> const m;
  job<float> j{16, 1, {5}};
  j.sampling.assign(16, {});
  for (size_t i = 0; i < 16; ++i) j.sampling[i].max_new_tokens = i == 0 ? 30 : 2;  // one long sample, fifteen short ones beside it
  auto const r = run<float>(m, j, settings_for(2, 9));
  CHECK(r.count.steps == 30);
  CHECK(r.count.mean_busy() == 2);
}

TEST_CASE("a pool smaller than the worst case: the youngest give way and replay, the samples stay the same") {
  tiny<float> const m;
  job<float> j{6, 4, {100, 60, 64}};
  auto const ample = run<float>(m, j, settings_for(8, 200));
  CHECK(ample.count.preemptions == 0);
  for (i32 pages : {3, 4, 6, 8}) {
    auto const r = run<float>(m, j, settings_for(8, pages));
    CHECK(same(r, ample));
    CHECK(r.count.replayed > 0);
    CHECK(r.count.prefilled == ample.count.prefilled);
    CHECK(r.count.saved == ample.count.saved);
    CHECK(r.count.decoded == ample.count.decoded);
    if (pages > 3) CHECK(r.count.preemptions > 0);
  }
}

TEST_CASE("random jobs in random settings: as with one slot and room for all") {
  std::mt19937 random{11};
  auto const pick = [&](i32 low, i32 high) { return low + i32(random() % u32(high - low + 1)); };
  tiny<float> const m{9};
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<i32> lengths;
    for (int k = 0; k < 5; ++k) lengths.push_back(pick(0, 3) ? pick(1, 12) : pick(0, 150));
    job<float> j{pick(1, 9), pick(1, 6), lengths, u32(turn)};
    j.stop_ids = {5, 6};
    j.sampling.assign(size_t(j.prompts), {});
    for (auto& how : j.sampling) how.max_new_tokens = pick(1, 40), how.temperature = f32(pick(0, 10)) / 8, how.top_k = pick(0, 30);
    size_t longest = 1;
    for (size_t p = 0; p < size_t(j.prompts); ++p)
      if (j.lengths[p]) longest = std::max(longest, size_t(j.lengths[p] + j.sampling[p].max_new_tokens - 1));
    i32 const least = i32(kv::pages_for(longest));
    auto const plain = run<float>(m, j, settings_for(1, 20, 512));
    auto const settings = settings_for(pick(1, 12), least + pick(0, 6), pick(1, 80), 200, pick(1, 9));
    INFO("turn ", turn, ": slots ", settings.slots, ", pages ", settings.pages, ", budget ", settings.batched_tokens);
    auto const r = run<float>(m, j, settings, turn % 8 == 0 ? 2 : 1);
    REQUIRE(same(r, plain));
    CHECK(r.count.prefilled == plain.count.prefilled);
  }
}

TEST_CASE("started = finished + aborted + in flight, after every step; nothing is allocated") {
  tiny<float> const m;
  job<float> j{7, 5, {100, 3, 64}};
  j.stop_ids = {1};
  auto const s = settings_for(6, 7, 20);
  auto r = room_for(j);
  memory<float, float> w{s, m.config};
  kernels::threads pool{2};
  kernels::cpu_context on{&pool};
  size_t const before = lab_allocations;
  {
    rollout::generation<float, float, kernels::cpu_context> g{on, m.policy(), j.request(), s, r.outputs(), w.view()};
    bool kept = true;
    while (g.advance()) {
      rollout::counters const c = g.counted();
      kept = kept && c.started == c.finished + c.aborted + g.in_flight() && g.in_flight() <= 6;
    }
    CHECK(lab_allocations == before);
    CHECK(kept);
    CHECK(g.in_flight() == 0);
    CHECK(g.counted().finished == 35);
  }
}

TEST_CASE("logits that are no numbers abort the sample, and no other") {
  tiny<float> const clean;
  job<float> j{6, 6, {20, 64, 5}};
  for (i32& id : j.ids) id = id == 9 ? 10 : id;
  auto const good = run<float>(clean, j, settings_for(5, 9, 30));
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    tiny<float> broken = clean;
    std::fill_n(broken.weights.begin() + 9 * 32, 32, bad);  // the embedding of id 9
    auto const r = run<float>(broken, j, settings_for(5, 9, 30));
    for (size_t i = 0; i < 36; ++i) {
      auto ids = good.response(i);
      auto const first = std::find(ids.begin(), ids.end(), 9);
      bool const hit = first != ids.end() && first + 1 != ids.end();
      if (hit) ids.erase(first + 1, ids.end());
      CHECK(r.response(i) == ids);
      CHECK((r.reasons[i] == finish::aborted) == hit);
    }
    CHECK(r.count.aborted > 0);
    CHECK(r.count.started == r.count.finished + r.count.aborted);
    CHECK(r.count.started == 36);
    for (float x : r.log_probs) CHECK(std::isfinite(x));
    CHECK(*std::min_element(r.ids.begin(), r.ids.end()) >= 0);
  }
}

namespace {
struct journal {
  std::vector<size_t> told;
  result<float> const* past = nullptr;
  std::vector<bool> has;
  int asked = 0;
  static bool known(void* self, rollout::sample_view<float> const& v) {
    auto& me = *static_cast<journal*>(self);
    ++me.asked;
    if (me.has.empty() || !me.has[v.sample]) return false;
    for (size_t k = 0; k < size_t(v.capacity); ++k) {  // garbage behind the length must not stay
      size_t const at = v.sample * size_t(v.capacity) + k;
      bool const inside = k < size_t(me.past->lengths[v.sample]);
      v.ids[k] = inside ? me.past->ids[at] : 77, v.log_probs[k] = inside ? me.past->log_probs[at] : 7,
      v.log_kept[k] = inside ? me.past->log_kept[at] : 7;
      v.entropies[k] = inside ? me.past->entropies[at] : 7;
    }
    *v.length = me.past->lengths[v.sample], *v.reason = me.past->reasons[v.sample];
    return true;
  }
  static void finished(void* self, rollout::sample_view<float> const& v) {
    CHECK(*v.reason != finish::running);
    CHECK(v.sample == size_t(v.prompt) * 5 + size_t(v.index));
    CHECK(v.draw == u32(100 + v.prompt));
    static_cast<journal*>(self)->told.push_back(v.sample);
  }
};
}  // namespace

TEST_CASE("the observer is told of each finished sample once; known samples are not generated again") {
  tiny<float> const m;
  job<float> j{5, 5, {30, 64, 2}};
  j.stop_ids = {3};
  journal first;
  j.watch = {&first, journal::known, journal::finished};
  auto const r = run<float>(m, j, settings_for(4, 8, 25));
  CHECK(first.asked == 25);
  std::vector<size_t> sorted = first.told, all(25);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), size_t{});
  CHECK(sorted == all);
  CHECK(first.told != all);  // the order of finishing

  std::mt19937 random{6};
  for (size_t turn = 0; turn < 12; ++turn) {  // killed after some, and resumed; then with any of them known
    size_t const done = 2 * turn + 1;
    if (turn > 5) std::shuffle(first.told.begin(), first.told.end(), random);
    journal second;
    second.past = &r, second.has.assign(25, false);
    for (size_t k = 0; k < done; ++k) second.has[first.told[k]] = true;
    j.watch.context = &second;
    auto const again = run<float>(m, j, settings_for(3, 5, 40));
    CHECK(same(again, r));
    CHECK(again.count.known == done);
    CHECK(again.count.started == 25 - done);
    CHECK(second.told.size() == 25 - done);
    for (size_t s : second.told) CHECK_FALSE(second.has[s]);
  }
}

TEST_CASE("degenerate: nothing to do, one token, one position") {
  tiny<float> const m;
  CHECK(run<float>(m, job<float>{0, 4, {5}}, settings_for(4, 9)).count.steps == 0);
  CHECK(run<float>(m, job<float>{4, 0, {5}}, settings_for(4, 9)).count.steps == 0);

  job<float> j{3, 2, {1}};
  j.sampling[0].max_new_tokens = 1;
  auto const r = run<float>(m, j, settings_for(1, 1, 1));
  CHECK(exact(m, j, r));
  CHECK(r.count.decoded == 6);
  CHECK(r.count.prefilled == 3);
  for (size_t i = 0; i < 6; ++i) CHECK((r.lengths[i] == 1 && r.reasons[i] == finish::length));

  job<float> holes{4, 2, {6, 0, 9, 0}};  // rows without a prompt
  auto const h = run<float>(m, holes, settings_for(3, 9));
  for (size_t i = 0; i < 8; ++i) {
    bool const there = i / 2 % 2 == 0;
    CHECK((h.lengths[i] > 0) == there);
    CHECK((h.reasons[i] == finish::running) == !there);
  }
  CHECK(h.count.started == 4);

  job<float> full{1, 2, {150}};  // the context ends the response
  auto const f = run<float>(m, full, settings_for(2, 9, 64, 155));
  CHECK((f.lengths[0] == 5 && f.reasons[0] == finish::length));
}

TEST_CASE("memory full of other garbage gives the same bits") {
  tiny<float> const m;
  job<float> const j{5, 3, {64, 1, 100}};
  auto const r = run<float>(m, j, settings_for(4, 6, 30), 1, 0xff);
  for (int garbage : {0x00, 0x7f, 0x80, 0x3e}) CHECK(same(r, run<float>(m, j, settings_for(4, 6, 30), 1, garbage)));
  auto const s = settings_for(4, 6, 30);
  memory<float, float> w{s, m.config};  // and memory that a run has used
  kernels::cpu_context on;
  for (int turn = 0; turn < 3; ++turn) {
    auto again = room_for(j);
    rollout::generate<float, float>(on, m.policy(), j.request(), s, again.outputs(), w.view());
    CHECK(same(r, again));
  }
}
