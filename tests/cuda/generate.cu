// Generation on a GPU called directly: pools that just hold one sequence, observers, stop strings, rules, samples that are not finite, and
// what a second call captures and allocates. (Log-probs against the training forward and the CPU: update.cpp.) `generate time [SAMPLES CONTEXT GROUP]...`
// prints milliseconds a decode step at the shape of Qwen3-0.6B; `generate quick` runs a few cases, for compute-sanitizer.
#include <weft/kernels/cuda/assemble.cuh>
#include <weft/kernels/cuda/attention.cuh>
#include <weft/kernels/cuda/embedding.cuh>
#include <weft/kernels/cuda/head.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/kernels/cuda/rope.cuh>
#include <weft/kernels/cuda/swiglu.cuh>
#include <weft/engine/cuda/generate.hpp>
#include <weft/model/initialise.hpp>
#include <weft/model/rope_table.hpp>

#include <chrono>

#include "device.cuh"

namespace {
using namespace test;
using rollout::finish;
bool quick = false;

struct lab {  // a model on the device
  model::config c;
  array<float> rope;
  array<bf16> weights;
  static std::vector<float> angles(model::config const& c) {
    std::vector<float> table(size_t(c.max_positions) * size_t(c.head_dim));
    model::fill_rope_table(c, size_t(c.max_positions), table.data());
    return table;
  }
  static std::vector<bf16> numbers(model::config const& c, float deviation) {
    std::normal_distribution<float> normal(0, std::hypot(0.02f, deviation));
    std::vector<float> some(std::min<size_t>(model::parameter_count(c), 999983));
    for (float& x : some) x = normal(random_engine);
    std::vector<bf16> w(model::parameter_count(c));
    model::for_each_tensor(c, [&](model::tensor const& t) {
      for (size_t i = 0; i < t.size(); ++i) w[t.offset + i] = narrow((t.cols ? 0.0f : 1.0f) + some[(t.offset + i) % some.size()]);
    });
    return w;
  }
  explicit lab(model::config const& shape, float deviation) : c(shape), rope(angles(c)), weights(numbers(c, deviation)) {}
};
struct samples {
  std::vector<i32> ids, lengths, reasons;
  std::vector<float> log_probs, kept, entropies;
  rollout::counters count;
  bool operator==(samples const& o) const {
    auto const bits = [](std::vector<float> const& a, std::vector<float> const& b) {
      return a.size() == b.size() && same(a.data(), b.data(), a.size());
    };
    return ids == o.ids && lengths == o.lengths && reasons == o.reasons && bits(log_probs, o.log_probs) && bits(kept, o.kept) &&
           bits(entropies, o.entropies);
  }
};
struct job {
  size_t prompts, group, room = 96, capacity = 80;
  std::vector<i32> ids, lengths;
  std::vector<u32> draws;
  std::vector<kernels::sampling> how{kernels::sampling{}};
  rollout::settings s{16, 256, 176, 200, 16};
  rollout::request<float> rules;  // stops, bias, observer

  job(size_t n, size_t each, i32 vocab, std::vector<i32> const& some) : prompts(n), group(each), ids(random_ids(n * room, vocab)) {
    for (size_t p = 0; p < n; ++p) lengths.push_back(some[p % some.size()]), draws.push_back(static_cast<u32>(100 + p));
  }
};
// Memory on the device for one job; run() may be called again.
template <class Kv> struct place {
  lab const& m;
  job j;
  rollout::workspace_sizes size;
  array<i32> prompt_ids, prompt_lengths;
  array<u32> draws;
  array<kernels::sampling> how;
  array<i32> ids, lengths, reasons, ints;
  array<float> log_probs, kept, entropies;
  array<bf16> reals, logits;
  array<Kv> pool;
  place(lab const& of, job const& what)
      : m(of)
      , j(what)
      , size(rollout::workspace_sizes_of<Kv>(j.s, m.c, true))
      , prompt_ids(j.ids)
      , prompt_lengths(j.lengths)
      , draws(j.draws)
      , how(j.how)
      , ids(j.prompts * j.group * j.capacity)
      , lengths(j.prompts * j.group)
      , reasons(j.prompts * j.group)
      , ints(size.ints)
      , log_probs(ids.start.size())
      , kept(ids.start.size())
      , entropies(ids.start.size())
      , reals(size.reals)
      , logits(size.logits)
      , pool(size.pool) {}
  rollout::counters run(kernels::cuda_context& on) {
    rollout::request<float> r = j.rules;
    r.prompts = static_cast<i32>(j.prompts), r.group = static_cast<i32>(j.group), r.prompt_capacity = static_cast<i32>(j.room), r.seed = 7;
    r.prompt_ids = prompt_ids.data, r.prompt_lengths = prompt_lengths.data, r.draws = draws.data;
    r.sampling = how.data, r.sampling_count = static_cast<i32>(j.how.size());
    rollout::outputs<float> const out{ids.data,
                                      log_probs.data,
                                      kept.data,
                                      entropies.data,
                                      lengths.data,
                                      reinterpret_cast<finish*>(reasons.data),
                                      static_cast<i32>(j.capacity)};
    return rollout::generate(on, rollout::policy<bf16>{&m.c, m.rope.data, m.weights.data}, r, j.s, out,
                             rollout::workspace<bf16, Kv>{ints.data, reals.data, logits.data, pool.data});
  }
  samples get(rollout::counters const& n) const {
    return {ids.get(), lengths.get(), reasons.get(), log_probs.get(), kept.get(), entropies.get(), n};
  }
};
template <class Kv = bf16> samples draw(kernels::cuda_context& on, lab const& m, job const& j) {
  place<Kv> at(m, j);
  auto const count = at.run(on);
  return at.get(count);
}
template <class Change> job changed(job j, Change const& change) {
  change(j);
  return j;
}

template <class Kv> void any_settings(kernels::cuda_context& on, kernels::cuda_context& eager, lab const& m, std::string const& name) {
  job const base = changed(job(7, 5, m.c.vocab, {1, 63, 64, 65, 96, 20, 80}), [](job& j) { j.how[0].temperature = 0.8f; });
  samples const first = draw<Kv>(on, m, base);
  expect(first.count.finished == 35 && first.count.preemptions == 0, name + ": all samples finish in a large pool");
  expect(first == draw<Kv>(eager, m, base), name + ": captured as eager");
  size_t const least = 3;  // pages of 96 + 80 - 1 positions
  for (i32 slots : quick ? std::vector<i32>{3} : std::vector<i32>{1, 3, 16, 64})
    for (size_t pages : quick ? std::vector<size_t>{least + 1} : std::vector<size_t>{least, least + 1, least + 2, 9, 400}) {
      samples const other = draw<Kv>(on, m, changed(base, [&](job& j) { j.s.slots = slots, j.s.pages = static_cast<i32>(pages); }));
      std::string const what = name + ", " + std::to_string(slots) + " slots, " + std::to_string(pages) + " pages";
      expect(first == other, what + ": other samples");
      expect(other.count.started == other.count.finished, what + ": every sample that started finished");
    }
  // samples that end with their first token, where few prompts fit at a time
  job const brief = changed(base, [&](job& j) { j.how[0].max_new_tokens = 1, j.s.pages = static_cast<i32>(least); });
  samples const one = draw<Kv>(on, m, brief);
  expect(one.count.finished == 35, name + ": " + std::to_string(one.count.finished) + " of 35 samples of one token");

  place<Kv> at(m, base);
  at.run(on), at.run(on);
  size_t const captured = on.graphs->captured;
  size_t before = 0, after = 0, total = 0;
  check(cudaMemGetInfo(&before, &total), "memory");
  expect(at.get(at.run(on)) == first, name + ": the third call");
  check(cudaMemGetInfo(&after, &total), "memory");
  expect(on.graphs->captured == captured, name + ": the third call captures nothing");
  expect(before == after, name + ": the third call allocates nothing");
}

struct watcher {
  job const* j;
  samples const* known;
  std::vector<i32> seen;
  bool right = true;
};
void rules(kernels::cuda_context& on, lab const& m, std::string const& name) {
  job const base(4, 3, m.c.vocab, {10, 64, 70, 3});
  samples const first = draw(on, m, base);

  std::vector<i32> offsets{0};  // the bytes of id i: one letter
  std::vector<unsigned char> letters;
  for (i32 i = 0; i < m.c.vocab; ++i) letters.push_back(static_cast<unsigned char>('a' + i % 4)), offsets.push_back(i + 1);
  i32 const two[] = {0, 3};
  unsigned char const text[] = {'a', 'b', 'c'};
  rollout::byte_strings const strings{two, text, 1}, tokens{offsets.data(), letters.data(), m.c.vocab};
  samples want = first;
  size_t cut = 0;
  for (size_t s = 0; s < want.lengths.size(); ++s)
    for (size_t n = 1; n <= static_cast<size_t>(first.lengths[s]); ++n)
      if (rollout::completes(strings, 0, tokens, &first.ids[s * base.capacity], n)) {
        want.lengths[s] = static_cast<i32>(n), want.reasons[s] = static_cast<i32>(finish::stop_string), ++cut;
        for (size_t k = s * base.capacity + n; k < (s + 1) * base.capacity; ++k)
          want.ids[k] = 0, want.log_probs[k] = want.kept[k] = want.entropies[k] = 0;
        break;
      }
  expect(cut > 3, name + ": stop strings that end a sample: " + std::to_string(cut));
  expect(want == draw(on, m, changed(base, [&](job& j) { j.rules.stop.strings = strings, j.rules.stop.tokens = tokens; })),
         name + ": stop strings");

  i32 const stops[] = {3, 11, 20};
  samples const late =
      draw(on, m, changed(base, [&](job& j) { j.rules.stop.ids = stops, j.rules.stop.id_count = 3, j.how[0].min_new_tokens = 33; }));
  bool good = true;
  for (size_t s = 0; s < late.lengths.size(); ++s) {
    good = good && late.lengths[s] >= 33;
    for (i32 k = 0; k < late.lengths[s]; ++k) {
      i32 const id = late.ids[s * base.capacity + static_cast<size_t>(k)];
      if (id == 3 || id == 11 || id == 20)
        good = good && k == late.lengths[s] - 1 && k >= 32 && late.reasons[s] >= 16 && stops[late.reasons[s] - 16] == id;
    }
  }
  expect(good, name + ": stop ids wait for the fewest tokens, then end the sample");

  i32 const biased[] = {1, 2};
  float const bias[] = {-INFINITY, 3};
  samples const ruled = draw(on, m, changed(base, [&](job& j) {
                               j.rules.bias_ids = biased, j.rules.bias = bias, j.rules.bias_count = 2, j.rules.sampled_ids = m.c.vocab - 20;
                             }));
  good = true;
  for (i32 id : ruled.ids) good = good && id != 1 && id < m.c.vocab - 20;
  expect(good, name + ": ids that may not be drawn");

  watcher w{&base, &first, std::vector<i32>(first.lengths.size()), true};
  samples const watched =
      draw(on, m, changed(base, [&](job& j) {
             j.rules.watch.context = &w;
             j.rules.watch.known = [](void* to, rollout::sample_view<float> const& v) {
               auto const& x = *static_cast<watcher*>(to);
               if (v.sample % 3 != 1) return false;
               size_t const at = v.sample * x.j->capacity, n = static_cast<size_t>(x.known->lengths[v.sample]);
               for (size_t k = 0; k < n; ++k)
                 v.ids[k] = x.known->ids[at + k], v.log_probs[k] = x.known->log_probs[at + k], v.log_kept[k] = x.known->kept[at + k],
                 v.entropies[k] = x.known->entropies[at + k];
               *v.length = x.known->lengths[v.sample], *v.reason = static_cast<finish>(x.known->reasons[v.sample]);
               return true;
             };
             j.rules.watch.finished = [](void* to, rollout::sample_view<float> const& v) {
               auto& x = *static_cast<watcher*>(to);
               size_t const at = v.sample * x.j->capacity;
               ++x.seen[v.sample];
               x.right = x.right && *v.length == x.known->lengths[v.sample] && same(v.ids, &x.known->ids[at], x.j->capacity) &&
                         same(v.log_probs, &x.known->log_probs[at], x.j->capacity) && v.draw == x.j->draws[static_cast<size_t>(v.prompt)];
             };
           }));
  good = w.right;
  for (size_t s = 0; s < w.seen.size(); ++s) good = good && w.seen[s] == (s % 3 == 1 ? 0 : 1);
  expect(good && watched == first && watched.count.known == 4, name + ": what an observer gives and sees");
}
void aborted(kernels::cuda_context& on, model::config const& c) {  // the embedding of one id is not finite
  lab m(c, 0.08f);
  job base(3, 2, c.vocab, {10, 20, 30});
  for (i32& id : base.ids) id = id == 5 ? 6 : id;
  base.ids[3] = 5;
  float const never[] = {-INFINITY};
  i32 const five[] = {5};
  base.rules.bias_ids = five, base.rules.bias = never, base.rules.bias_count = 1;
  samples const whole = draw(on, m, base);
  bf16 const nan = narrow(NAN);
  check(cudaMemcpy(m.weights.data + model::layout_of(c).embedding + 5 * size_t(c.hidden), &nan, sizeof nan, cudaMemcpyHostToDevice), "NaN");
  samples const broken = draw(on, m, base);
  bool good = broken.count.aborted == 2;
  for (size_t s = 0; s < 6; ++s) {
    if (s < 2) good = good && broken.reasons[s] == static_cast<i32>(finish::aborted) && broken.lengths[s] == 0;
    else
      good = good && broken.lengths[s] == whole.lengths[s] &&
             same(&broken.log_probs[s * base.capacity], &whole.log_probs[s * base.capacity], base.capacity);
  }
  expect(good, "a prompt whose hidden states are not finite ends its samples, others do not see it");
}

template <class Kv> void timed(kernels::cuda_context& on, lab const& m, size_t samples_at_once, size_t context, size_t group) {
  job j(samples_at_once / group, group, m.c.vocab, {static_cast<i32>(context)});
  j.room = context, j.ids = random_ids(j.prompts * context, m.c.vocab);
  j.capacity = 129;
  j.s = {static_cast<i32>(samples_at_once), 8192, static_cast<i32>(context + 129), 0, 16};
  j.s.pages = rollout::most_pages(j.s) / 2 + 64;
  double seconds[2];
  for (int k = 0; k < 2; ++k) {
    j.how[0].max_new_tokens = k ? 129 : 1;
    place<Kv> at(m, j);
    for (int turn = 0; turn < 3; ++turn) {
      auto const start = std::chrono::steady_clock::now();
      at.run(on);
      seconds[k] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  }
  std::printf("%s KV, %zu samples in groups of %zu, context %zu: prefill %.1f ms, decode %.3f ms a step\n", sizeof(Kv) == 2 ? "bf16" : "f8",
              samples_at_once, group, context, 1e3 * seconds[0], 1e3 * (seconds[1] - seconds[0]) / 128);
  std::fflush(stdout);
}
model::config small(bool tied, i32 head_dim) {
  model::config c;
  c.layers = 2, c.hidden = 288, c.intermediate = 576, c.heads = 4, c.kv_heads = 2, c.head_dim = head_dim, c.vocab = 72,
  c.max_positions = 256;
  c.tied = tied, c.qk_norm = tied, c.qkv_bias = !tied;
  return c;
}
}  // namespace

int main(int count, char** words) {
  machine gpu;
  kernels::gemm_plans plans("/tmp/weft-plans.txt");
  kernels::graph_cache graphs;
  gpu.on.gemms = &plans;
  kernels::cuda_context eager = gpu.on;
  gpu.on.graphs = &graphs;
  try {
    if (count > 1 && std::string(words[1]) == "time") {
      model::config c;
      c.layers = 28, c.hidden = 1024, c.intermediate = 3072, c.heads = 16, c.kv_heads = 8, c.head_dim = 128, c.vocab = 151936,
      c.max_positions = 16384;
      c.tied = c.qk_norm = true;
      lab const m(c, 0.001f);
      std::vector<size_t> asked;
      for (int i = 2; i < count; ++i) asked.push_back(std::stoul(words[i]));
      if (asked.empty())
        for (size_t context : {512, 2048, 8192})
          for (size_t n : {1, 16, 64, 128, 256})
            if (context * n <= size_t{1} << 20) asked.insert(asked.end(), {n, context, 1});
      for (size_t i = 0; i + 2 < asked.size(); i += 3)
        timed<bf16>(gpu.on, m, asked[i], asked[i + 1], asked[i + 2]), timed<f8e4m3>(gpu.on, m, asked[i], asked[i + 1], asked[i + 2]);
      return 0;
    }
    quick = count > 1 && std::string(words[1]) == "quick";
    for (bool tied : {false, true})
      for (i32 head_dim : {64, 128}) {
        if (quick && tied != (head_dim == 128)) continue;
        lab const m(small(tied, head_dim), 0.08f);
        std::string const name = std::string(tied ? "tied, q/k norm" : "untied, biases") + ", heads of " + std::to_string(head_dim);
        any_settings<bf16>(gpu.on, eager, m, name);
        any_settings<f8e4m3>(gpu.on, eager, m, name + ", f8");
        rules(gpu.on, m, name);
      }
    aborted(gpu.on, small(false, 64));
  } catch (std::exception const& e) { expect(false, std::string("thrown: ") + e.what()); }
  return report();
}
