// Training steps on a GPU against the CPU in f32: losses, gradient norms and weights, eagerly and captured.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <weft/engine/cpu.hpp>
#include <weft/model/initialise.hpp>
#include <weft/model/rope_table.hpp>
#include "update.hpp"

namespace {
using namespace lab;
int passed = 0, failed = 0;
void expect(bool good, std::string const& what) {
  good ? ++passed : ++failed;
  if (!good) std::printf("FAILED: %s\n", what.c_str());
}
bf16 narrow(f32 f) {
  u32 bits;
  std::memcpy(&bits, &f, 4);
  return {std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
f32 wide(bf16 x) {
  u32 const bits = u32{x.bits} << 16;
  f32 f;
  std::memcpy(&f, &bits, 4);
  return f;
}
std::vector<f32> weights_of(model::config const& c, u64 seed) {  // bf16 numbers: both sides start alike
  std::vector<f32> w(model::parameter_count(c));
  model::initialise(c, seed, w.data());
  std::mt19937_64 random(seed);
  std::normal_distribution<f32> normal(0, 0.08f);
  model::for_each_tensor(c, [&](model::tensor const& t) {
    for (size_t i = 0; i < t.size(); ++i) w[t.offset + i] = wide(narrow(w[t.offset + i] + normal(random)));
  });
  return w;
}
struct side {  // one bound graph, on either
  std::unique_ptr<any_step> step;
  gpu* on = nullptr;  // null: the CPU

  template <class P> void feed(std::vector<typename P::element> const& v) {
    auto const at = step->view_of<P>();
    expect(at.count() == v.size(), "sizes of what is fed");
    std::memcpy(at.data, v.data(), v.size() * sizeof v[0]);
  }
  template <class P> std::vector<typename P::element> kept() {
    auto const at = step->view_of<P>();
    return {at.data, at.data + at.count()};
  }
  void put(void* to, void const* from, size_t bytes) { on ? on->write(to, from, bytes) : void(std::memcpy(to, from, bytes)); }
  void get(void* to, void const* from, size_t bytes) { on ? on->read(to, from, bytes) : void(std::memcpy(to, from, bytes)); }
  template <class M> void load(model::config const& c, std::vector<f32> const& w, size_t positions) {
    std::vector<f32> rope(positions * size_t(c.head_dim));
    model::fill_rope_table(c, positions, rope.data());
    put(step->view_of<rope_table<M>>().data, rope.data(), rope.size() * 4);
    if (!on) put(step->view_of<weights<M>>().data, w.data(), w.size() * 4);
    if (on) {
      std::vector<bf16> small(w.size());
      for (size_t i = 0; i < w.size(); ++i) small[i] = narrow(w[i]);
      put(step->view_of<weights<M>, bf16>().data, small.data(), small.size() * 2);
    }
    if (step->has<updates_done<M>>()) {
      if (on) put(step->view_of<masters<M>>().data, w.data(), w.size() * 4);
      auto const m = step->view_of<moments<M>>();
      std::vector<std::uint8_t> zero(m.count());
      i32 const none = 0;
      put(m.data, zero.data(), zero.size());
      put(step->view_of<updates_done<M>>().data, &none, 4);
    }
  }
  template <class M> std::vector<f32> trained(size_t n) {
    std::vector<f32> w(n);
    get(w.data(), on ? step->view_of<masters<M>>().data : step->view_of<weights<M>>().data, n * 4);
    return w;
  }
};
double distance(std::vector<f32> const& a, std::vector<f32> const& b, std::vector<f32> const& from) {  // relative to how far b went
  double d = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i) d += std::pow(double(a[i]) - double(b[i]), 2), n += std::pow(double(b[i]) - double(from[i]), 2);
  return std::sqrt(d / (n + 1e-30));
}
template <class T> bool near(T a, T b, double tolerance, double floor) {
  return std::fabs(double(a) - double(b)) <= tolerance * std::fmax(std::fabs(double(b)), floor);
}

template <class M> void compare(kind what, shape const& s, std::string const& name, int steps) {
  model::config const& c = std::is_same_v<M, critic> ? s.critic : s.actor;
  std::mt19937_64 random(7);
  std::normal_distribution<f32> normal;
  size_t const samples = s.prompts * s.group, cells = samples * s.room;
  std::vector<i32> ids(s.prompts * s.prompt_room), prompt_n(s.prompts), responses(cells), n(samples), use(samples);
  std::vector<kernels::sampling> how(s.prompts);
  for (i32& x : ids) x = i32(random() % u64(s.actor.vocab));
  for (i32& x : responses) x = i32(random() % u64(s.actor.vocab));
  for (size_t p = 0; p < s.prompts; ++p) prompt_n[p] = 1 + i32(random() % s.prompt_room), how[p].temperature = p % 2 ? 0.8f : 1;
  for (size_t i = 0; i < samples; ++i) n[i] = i % 13 == 4 ? 0 : 1 + i32(random() % s.room), use[i] = i % 11 != 3;
  std::vector<f32> old(cells), ref(cells), a(cells), v(cells), target(cells);
  for (f32& x : old) x = -4.2f + 0.2f * normal(random);
  for (f32& x : ref) x = -4.2f + 0.2f * normal(random);
  for (auto* each : {&a, &v, &target})
    for (f32& x : *each) x = normal(random);
  auto const w = weights_of(c, 3);

  gpu eager(true), graphs(false);
  side sides[3] = {{make(cpu{}, what, s)}, {eager.make(what, s), &eager}, {graphs.make(what, s), &graphs}};
  size_t const allocations = graphs.allocations();
  size_t captured = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<f32> norms[3];
    std::vector<double> sums[3];
    for (int i = 0; i < 3; ++i) {
      side& x = sides[i];
      if (step == 0) x.load<M>(c, w, s.prompt_room + s.room);
      x.feed<prompts<training>>(ids), x.feed<prompt_lengths<training>>(prompt_n), x.feed<tokens<training>>(responses);
      x.feed<lengths<training>>(n), x.feed<included>(use);
      if (what == kind::policy || what == kind::gspo) {
        x.feed<sampling_of<training>>(how), x.feed<log_probs<training>>(old), x.feed<advantages>(a), x.feed<ref_log_probs>(ref);
      }
      if (what == kind::critic) x.feed<values>(v), x.feed<returns>(target);
      x.feed<passes<M>>({1}), x.feed<epoch_seed<M>>({u32(5 + step)}), x.feed<learning_rate<M>>({1e-3f});
      x.step->step();
      norms[i] = x.kept<gradient_norms<M>>(), sums[i] = x.kept<loss_sums<M>>();
    }
    std::string const at = name + ", step " + std::to_string(step) + ": ";
    for (size_t k = 0; k < norms[0].size(); ++k)
      expect(near(norms[1][k], norms[0][k], step ? 0.12 : 0.03, 1e-6),
             at + "gradient norm " + std::to_string(norms[1][k]) + ", on the CPU " + std::to_string(norms[0][k]));
    for (size_t k = 0; k < sums[0].size(); ++k)
      expect(near(sums[1][k], sums[0][k], 0.05, k < sum_tokens ? 0.4 * (sums[0][sum_tokens] + 2) : 0),
             at + "sum " + std::to_string(k) + " is " + std::to_string(sums[1][k]) + ", on the CPU " + std::to_string(sums[0][k]));
    expect(norms[1] == norms[2] && std::memcmp(sums[1].data(), sums[2].data(), sums[1].size() * 8) == 0, at + "captured as eager");
    if (step == 1) captured = graphs.captured();
  }
  auto const one = sides[0].trained<M>(w.size()), two = sides[1].trained<M>(w.size()), three = sides[2].trained<M>(w.size());
  double const d = distance(two, one, w);
  expect(d < 0.35, name + ": the weights went elsewhere than on the CPU, by " + std::to_string(d));
  expect(two == three, name + ": weights, captured as eager");
  expect(graphs.allocations() == allocations, name + ": nothing is allocated after the start");
  std::printf("%s: weights differ by %.3f of their way; %zu graphs captured, %zu launched (%zu after two steps)\n", name.c_str(), d,
              graphs.captured(), graphs.launched(), captured);
}
model::config small(i32 labels, bool tied, bool qk_norm, i32 head_dim) {
  model::config c;
  c.layers = 2, c.hidden = 64, c.intermediate = 96, c.heads = 4, c.kv_heads = 2, c.head_dim = head_dim, c.vocab = 72, c.max_positions = 256;
  c.tied = tied, c.qk_norm = qk_norm, c.qkv_bias = !qk_norm, c.labels = labels;
  return c;
}
// Passes without a gradient: log-probs under a reference model, and values.
void score(shape const& s, std::string const& name) {
  std::mt19937_64 random(9);
  size_t const samples = s.prompts * s.group, cells = samples * s.room;
  std::vector<i32> ids(s.prompts * s.prompt_room), prompt_n(s.prompts), responses(cells), n(samples), use(samples, 1);
  std::vector<kernels::sampling> how(s.prompts);
  for (i32& x : ids) x = i32(random() % u64(s.actor.vocab));
  for (i32& x : responses) x = i32(random() % u64(s.actor.vocab));
  for (size_t p = 0; p < s.prompts; ++p) prompt_n[p] = 1 + i32(random() % s.prompt_room), how[p].temperature = p % 2 ? 0.7f : 1;
  for (size_t i = 0; i < samples; ++i) n[i] = 1 + i32(random() % s.room);
  auto const w = weights_of(s.actor, 3), v = weights_of(s.critic, 4);
  gpu eager(true), graphs(false);
  side sides[3] = {{make(cpu{}, kind::scoring, s)}, {eager.make(kind::scoring, s), &eager}, {graphs.make(kind::scoring, s), &graphs}};
  std::vector<f32> lp[3], value[3];
  for (int step = 0; step < 3; ++step)
    for (int i = 0; i < 3; ++i) {
      side& x = sides[i];
      if (step == 0) x.load<reference>(s.actor, w, s.prompt_room + s.room), x.load<critic>(s.critic, v, s.prompt_room + s.room);
      x.feed<prompts<training>>(ids), x.feed<prompt_lengths<training>>(prompt_n), x.feed<tokens<training>>(responses);
      x.feed<lengths<training>>(n), x.feed<included>(use), x.feed<sampling_of<training>>(how);
      x.step->step();
      lp[i] = x.kept<ref_log_probs>(), value[i] = x.kept<values>();
    }
  double most = 0, most_value = 0;
  for (size_t i = 0; i < cells; ++i) {
    most = std::fmax(most, std::fabs(double(lp[1][i]) - double(lp[0][i])));
    most_value = std::fmax(most_value, std::fabs(double(value[1][i]) - double(value[0][i])));
  }
  expect(most < 0.15, name + ": log-probs of the reference differ by " + std::to_string(most));
  expect(most_value < 0.1, name + ": values differ by " + std::to_string(most_value));
  expect(lp[1] == lp[2] && value[1] == value[2], name + ": captured as eager");
  std::printf("%s: log-probs within %.3g, values within %.3g of the CPU's\n", name.c_str(), most, most_value);
}
struct drawn_samples {
  std::vector<i32> ids, lengths, reasons;
  std::vector<f32> log_probs, kept, entropies, trained;
  std::vector<double> sums;
  bool operator==(drawn_samples const& o) const {
    return ids == o.ids && lengths == o.lengths && reasons == o.reasons && log_probs == o.log_probs && kept == o.kept &&
           entropies == o.entropies;
  }
};
struct problem {
  shape s;
  std::vector<i32> ids, lengths;
  std::vector<kernels::sampling> how;
  problem(model::config const& c, size_t prompts, size_t group, size_t prompt_room, size_t room, unsigned seed) {
    s.actor = c, s.critic = c;
    s.prompts = prompts, s.group = group, s.prompt_room = prompt_room, s.room = room, s.tokens = 512;
    s.rollout.slots = 16, s.rollout.batched_tokens = 256, s.rollout.context = i32(prompt_room + room), s.rollout.head_rows = 16;
    std::mt19937 random(seed);
    ids.resize(prompts * prompt_room), lengths.resize(prompts), how.resize(prompts);
    for (i32& x : ids) x = i32(random() % unsigned(c.vocab));
    for (size_t p = 0; p < prompts; ++p) {
      lengths[p] = p == 1 ? 64 : 1 + i32(random() % prompt_room);
      if (lengths[p] > i32(prompt_room)) lengths[p] = i32(prompt_room);
      how[p].temperature = p % 3 == 1 ? 0.7f : 1;
      if (p % 4 == 2) how[p].top_k = 20, how[p].top_p = 0.9f;
      if (p % 5 == 3) how[p].max_new_tokens = 1 + i32(p);
      if (p % 5 == 4) how[p].min_new_tokens = 9;
    }
    s.rollout.pages = 2 * rollout::most_pages(s.rollout);
  }
};
template <class Change> drawn_samples draw(gpu* on, kind what, problem p, std::vector<f32> const& w, Change const& change, int times = 1) {
  change(p);
  side x{on ? on->make(what, p.s) : make(cpu{}, what, p.s), on};
  x.load<actor>(p.s.actor, w, p.s.prompt_room + p.s.room), x.load<reference>(p.s.actor, w, p.s.prompt_room + p.s.room);
  size_t captured = 0;
  for (int k = 0; k < times; ++k) {
    x.feed<prompts<training>>(p.ids), x.feed<prompt_lengths<training>>(p.lengths);
    std::vector<u32> draw_numbers(p.s.prompts);
    for (size_t i = 0; i < p.s.prompts; ++i) draw_numbers[i] = u32(100 + i);
    x.feed<draws<training>>(draw_numbers), x.feed<sampling_of<training>>(p.how);
    x.feed<included>(std::vector<i32>(p.s.prompts * p.s.group, 1));
    x.step->step();
    if (k == 1 && on) captured = on->captured();
  }
  if (times > 2) expect(on->captured() == captured, "the third call captures nothing");
  return {x.kept<tokens<training>>(),   x.kept<lengths<training>>(),   x.kept<finishes<training>>(), x.kept<log_probs<training>>(),
          x.kept<log_kept<training>>(), x.kept<entropies<training>>(), x.kept<ref_log_probs>(),      x.kept<rollout_sums<training>>()};
}
void rollouts(model::config const& c, std::string const& name) {
  problem const p(c, 9, 5, 90, 70, 4);
  auto const w = weights_of(c, 5);
  i32 const stops[] = {3, 11};
  auto const with_stops = [&](problem& q) { q.s.stop.ids = stops, q.s.stop.id_count = 2; };
  gpu eager(true), graphs(false);
  auto const first = draw(&graphs, kind::rollout, p, w, with_stops, 3);
  size_t drawn = 0, unequal = 0, ended = 0;
  for (size_t s = 0; s < first.lengths.size(); ++s) {
    ended += first.reasons[s] >= 16;
    for (size_t t = 0; t < p.s.room; ++t) {
      size_t const i = s * p.s.room + t;
      bool const there = t < size_t(first.lengths[s]);
      drawn += there, unequal += std::memcmp(&first.log_probs[i], &first.trained[i], 4) != 0;
      if (!there) expect(first.ids[i] == 0 && first.log_probs[i] == 0, name + ": something stands behind a response");
    }
  }
  expect(drawn > 500 && ended > 3, name + ": " + std::to_string(drawn) + " tokens, " + std::to_string(ended) + " ended by a stop id");
  expect(unequal == 0,
         name + ": of " + std::to_string(drawn) + " log-probs " + std::to_string(unequal) + " are not those of the training forward");
  expect(first == draw(&eager, kind::rollout, p, w, with_stops), name + ": captured as eager");
  struct {
    char const* what;
    i32 slots, batched, pages;
  } const ways[] = {{"one slot", 1, 256, 0},
                    {"48 slots", 48, 256, 0},
                    {"pieces of prompts", 16, 16, 0},
                    {"few pages", 16, 256, 12},
                    {"fewer pages", 48, 256, 4}};
  for (auto const& way : ways) {
    auto const other = draw(&graphs, kind::rollout, p, w, [&](problem& q) {
      with_stops(q);
      q.s.rollout.slots = way.slots, q.s.rollout.batched_tokens = way.batched;
      q.s.rollout.pages = way.pages ? way.pages : 2 * rollout::most_pages(q.s.rollout);
    });
    expect(first == other, name + ", " + way.what + ": other samples");
    if (way.pages) expect(other.sums[8] > 0, name + ", " + way.what + ": nobody was preempted");
  }
  auto const greedy = [&](problem& q) {
    with_stops(q);
    for (auto& h : q.how) h = {}, h.temperature = 0;
    q.s.rollout.slots = 45;
  };
  auto const here = draw(&graphs, kind::rollout, p, w, greedy), there = draw(nullptr, kind::rollout, p, w, greedy);
  double most = 0;
  size_t same = 0, all = 0;
  for (size_t s = 0; s < here.lengths.size(); ++s)
    for (size_t t = 0; t < p.s.room; ++t, ++all) {
      size_t const i = s * p.s.room + t;
      if (here.ids[i] != there.ids[i]) break;
      same += 1, most = std::fmax(most, std::fabs(double(here.log_probs[i]) - double(there.log_probs[i])));
    }
  expect(most < 0.2 && same > all / 4, name + ": greedy, log-probs differ by " + std::to_string(most) + " from the CPU's");
  auto const f8 = draw(&graphs, kind::rollout_f8, p, w, with_stops), f8_eager = draw(&eager, kind::rollout_f8, p, w, with_stops);
  expect(f8 == f8_eager, name + ", f8: captured as eager");
  double mean = 0, worst = 0;
  size_t n = 0;
  for (size_t s = 0; s < f8.lengths.size(); ++s)
    for (size_t t = 0; t < size_t(f8.lengths[s]); ++t, ++n) {
      double const d = std::fabs(double(f8.log_probs[s * p.s.room + t]) - double(f8.trained[s * p.s.room + t]));
      mean += d, worst = std::fmax(worst, d);
    }
  expect(mean / double(n) < 0.1, name + ", f8: log-probs are off by " + std::to_string(mean / double(n)));
  std::printf("%s: %zu tokens, greedy equal to the CPU's for %zu of %zu, log-probs within %.3g; f8: mean %.3g, most %.3g off the training "
              "forward\n",
              name.c_str(), drawn, same, all, most, mean / double(n), worst);
}
void timed(std::string const& name, bool eager) {
  model::config c;
  bool const large = name == "8b";
  c.layers = large ? 32 : 28, c.hidden = large ? 4096 : 1024, c.intermediate = large ? 14336 : 3072, c.heads = large ? 32 : 16,
  c.kv_heads = 8, c.head_dim = 128, c.vocab = large ? 128256 : 151936, c.max_positions = 4096, c.tied = !large, c.qk_norm = !large;
  shape s{c, c, 1, 8, 512, 1536, large ? 8192 : 16384, 1, large};
  gpu on(eager);
  side x{on.make(kind::policy, s), &on};
  size_t const samples = s.prompts * s.group, cells = samples * s.room;
  std::vector<i32> ids(s.prompts * s.prompt_room, 5), prompt_n(s.prompts, i32(s.prompt_room)), responses(cells), n(samples, i32(s.room)),
      use(samples, 1);
  for (size_t i = 0; i < cells; ++i) responses[i] = i32(i * 7919 % size_t(c.vocab));
  std::vector<f32> old(cells, -11), ref(cells, -11), a(cells, 0.5f), w(model::parameter_count(c));
  std::mt19937 random(1);
  for (f32& y : w) y = 0.02f * (f32(random()) / 4294967296.0f - 0.5f) * 3.46f;
  x.load<actor>(c, w, s.prompt_room + s.room);
  for (int i = 0; i < 4; ++i) {
    x.feed<prompts<training>>(ids), x.feed<prompt_lengths<training>>(prompt_n), x.feed<tokens<training>>(responses);
    x.feed<lengths<training>>(n), x.feed<included>(use);
    x.feed<sampling_of<training>>(std::vector<kernels::sampling>(s.prompts)), x.feed<log_probs<training>>(old), x.feed<advantages>(a),
        x.feed<ref_log_probs>(ref);
    x.feed<passes<actor>>({1}), x.feed<epoch_seed<actor>>({1}), x.feed<learning_rate<actor>>({1e-6f});
    auto const start = std::chrono::steady_clock::now();
    x.step->step();
    double const t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    auto const sums = x.kept<loss_sums<actor>>();
    std::printf("%s step %d: %.1f ms, %.0f tokens/s, norm %.4g, loss %.4g, tokens %.0f\n", name.c_str(), i, 1e3 * t,
                double(samples * (s.prompt_room + s.room)) / t, double(x.kept<gradient_norms<actor>>()[0]), sums[0], sums[sum_tokens]);
  }
}
}  // namespace

int main(int count, char** values) {
  try {
    if (count > 1) return timed(values[1], count > 2), 0;
    for (bool tied : {false, true}) {
      shape s{small(0, tied, tied, tied ? 64 : 16), small(1, false, tied, tied ? 64 : 16)};
      s.recompute = tied;
      std::string const name = tied ? "tied, q/k norm, recompute" : "untied, biases";
      compare<actor>(kind::sft, s, "sft, " + name, 4);
      compare<actor>(kind::policy, s, "policy, " + name, 4);
      compare<actor>(kind::gspo, s, "gspo, " + name, 3);
      compare<critic>(kind::critic, s, "critic, " + name, 4);
      score(s, "scoring, " + name);
      rollouts(s.actor, "rollout, " + name);
    }
    rollouts(small(0, false, false, 128), "rollout, biases, heads of 128");
  } catch (std::exception const& e) { expect(false, std::string("thrown: ") + e.what()); }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
