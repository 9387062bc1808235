// step.cpp — GRPO steps of a model of some 20 million parameters, and what they reach of this machine: ratios of one run, to the rate of
// OpenBLAS on a product of 1024^3 (or our own, where it was not found). Whole steps and products take turns, and each counts with its best.
//   step [--hidden 384] [--layers 8] ... [--rounds 3]
//   step --shape qwen3-0.6b|llama-3-8b ...           on one GPU: gpu/step.cpp
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <weft/engine/cpu.hpp>
#include <weft/model/initialise.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/plan.hpp>
#include <weft/recipes/grpo.hpp>

#include "measure.hpp"
#include "gpu/step.hpp"

using namespace weft;

namespace {
struct shape {
  std::string name;
  i32 hidden, layers, intermediate, heads, kv_heads, vocab;
  i32 prompts, group, prompt, response;  // samples of a step and their tokens; every response runs to its end
  i32 slots, updates, tokens;            // mini-batches of a step; budget of a micro-batch

  i32 samples() const { return prompts * group; }
  model::config config() const {
    model::config c;
    c.hidden = hidden, c.layers = layers, c.intermediate = intermediate, c.heads = heads, c.kv_heads = kv_heads, c.vocab = vocab;
    c.head_dim = hidden / heads, c.max_positions = prompt + response;
    return c;
  }
};

// ---- operations, as multiply and add counted apart -------------------------------------------------------
struct work {
  double body, head;  // weights of all linear layers; of the LM head
  double attention;   // forward, of all samples of a step
  explicit work(shape const& s) {
    auto const c = s.config();
    double const width = c.hidden, q = double(c.q_width()), kv = double(c.kv_width()), length = s.prompt + s.response - 1;
    body = s.layers * (width * (q + 2 * kv) + q * width + 3 * width * s.intermediate);
    head = width * s.vocab;
    attention = s.layers * 4 * q * length * (length + 1) / 2 * s.samples();
  }
  double training(shape const& s) const {
    double const tokens = double(s.samples()) * (s.prompt + s.response - 1), rows = double(s.samples()) * s.response;
    return 6 * body * tokens + 3.5 * attention + 6 * head * rows;
  }
  double generation(shape const& s) const {  // 2 for each weight and token; attention is not counted
    return 2 * body * double(s.prompts) * s.prompt + 2 * (body + head) * double(s.samples()) * s.response;
  }
};

// ---- a bound recipe --------------------------------------------------------------------------------------
// The reward is called between generation and update: it tells when the one ended and the other began.
struct lap {
  double first = 0, last = 0;
};
rl::reward_result score(void* context, i32, i32 const* ids, i32 count) {
  auto& t = *static_cast<lap*>(context);
  t.last = measure::now();
  if (t.first == 0) t.first = t.last;
  f32 n = 0;
  for (i32 i = 0; i < count; ++i) n += f32(ids[i] % 3 == 0);
  return {n / f32(count), rl::reward_result::scored};
}
using recipe = rl::grpo<>;
template <class E> bound<E, recipe> bound_to(E const& on, shape const& s, lap& laps) {
  rl::generation<rl::training> g;
  g.slots = s.slots, g.batched_tokens = std::max(s.slots, 256), g.context = s.prompt + s.response, g.head_rows = s.slots;
  g.pages = rollout::most_pages(g);
  return bind<recipe>(on, rl::prompt<rl::training>{{size_t(s.prompts)}}, rl::group<rl::training>{{size_t(s.group)}},
                      rl::prompt_position<rl::training>{{size_t(s.prompt)}}, rl::position<rl::training>{{size_t(s.response)}},
                      rl::rope_position{{size_t(s.prompt + s.response)}}, rl::lane{{1}}, rl::epoch<rl::actor>{{1}},
                      rl::minibatch<rl::actor>{{size_t(s.updates)}}, rl::config<rl::actor>{s.config()}, g, rl::decoding<rl::training>{},
                      rl::reward_source<rl::training>{&laps, &score}, rl::group_baseline{}, rl::token_budget<rl::actor>{s.tokens, 0, 0},
                      rl::optimizer<rl::actor>{}, rl::policy_objective{});
}
template <class Bound> void fill(Bound& graph, shape const& s) {
  model::initialise(s.config(), 3, graph.template view_of<rl::weights<rl::actor>>().data);
  model::fill_rope_table<f32>(s.config(), size_t(s.prompt + s.response), graph.template view_of<rl::rope_table<rl::actor>>().data);
  auto const moments = graph.template view_of<rl::moments<rl::actor>>();
  std::fill_n(moments.data, moments.count(), std::uint8_t{});
  graph.template view_of<rl::updates_done<rl::actor>>()() = 0;
  graph.template view_of<rl::passes<rl::actor>>()() = 1;
  graph.template view_of<rl::learning_rate<rl::actor>>()() = 1e-4f;
  graph.template view_of<rl::epoch_seed<rl::actor>>()(0) = 9;
  for (size_t p = 0; p < size_t(s.prompts); ++p) {
    for (size_t k = 0; k < size_t(s.prompt); ++k)
      graph.template view_of<rl::prompts<rl::training>>()(p, k) = i32((40 + 7 * p + k) % size_t(s.vocab));
    graph.template view_of<rl::prompt_lengths<rl::training>>()(p) = s.prompt;
    graph.template view_of<rl::rows<rl::training>>()(p) = graph.template view_of<rl::draws<rl::training>>()(p) = i32(p);
    graph.template view_of<rl::sampling_of<rl::training>>()(p) = {};
  }
}

// ---- what a step took ------------------------------------------------------------------------------------
struct step_times {
  double generation = 1e9, update = 1e9;  // best seconds; update: from the last score to the end
  double whole = 0, stages = 0;           // wall-clock seconds of all steps, and of the stages in them
  int steps = 0;
};
struct runner {
  bound<cpu, recipe>& graph;
  lap& laps;
  detail::program const& p = graph.template program_of<recipe>();
  std::vector<double> seconds = std::vector<double>(p.n), best = std::vector<double>(p.n, 1e9);

  void step(step_times& t) {
    std::fill(seconds.begin(), seconds.end(), 0.0);
    graph.executor().seconds = seconds.data();
    laps = {};
    double const began = detail::now(), start = measure::now();
    graph.step();
    double const end = measure::now();
    t.whole += detail::now() - began, ++t.steps;
    for (size_t n = 0; n < p.n; ++n) t.stages += seconds[n], best[n] = std::fmin(best[n], seconds[n]);
    t.generation = std::fmin(t.generation, laps.first - start), t.update = std::fmin(t.update, end - laps.last);
  }
  void print(double least) const {  // nodes above `least` of all stages, best wall-clock times
    double sum = 0;
    for (double s : best) sum += s;
    for (size_t n = 0; n < p.n; ++n)
      if (best[n] < 1e8 && best[n] > least * sum)
        std::printf("    %-58s %10.2f ms %5.1f %%\n", detail::node_name(p, n).c_str(), best[n] * 1e3, 100 * best[n] / sum);
  }
};

// ---- memory ----------------------------------------------------------------------------------------------
double resident_peak() {  // bytes of this process
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_maxrss) * 1024;
}
struct arena_use {
  double planned = 0, pool = 0, activations = 0, logits = 0, shared = 0;
};
arena_use arena_of(bound<cpu, recipe> const& graph) {
  arena_use u;
  for (auto const& map : memory_map(graph)) {
    u.planned += double(map.arena + map.state) * double(map.count);
    buffer_line const* pool = nullptr;
    for (auto const& b : map.buffers)
      if (b.port.find("kv_pool") != std::string::npos) pool = &b, u.pool = double(b.bytes);
    for (auto const& b : map.buffers) {
      bool const room = b.port.find("activations") != std::string::npos, logits = b.port.find("logits<") != std::string::npos;
      if (room) u.activations = double(b.bytes);
      if (logits) u.logits += double(b.bytes);
      if (!pool || !(room || logits)) continue;
      size_t const begin = std::max(b.offset, pool->offset), end = std::min(b.offset + b.bytes, pool->offset + pool->bytes);
      if (begin < end) u.shared += double(end - begin);
    }
  }
  return u;
}

// ---- what exactness costs --------------------------------------------------------------------------------
// All products of one training step and of one decode step, each against OpenBLAS on its own shape.
struct cost {
  double training = 0, decode = 0, one_row = 0;
};  // time of OpenBLAS over ours; 0: not there
double ratio_of(kernels::cpu_context& on, std::vector<std::pair<double, measure::product>> const& all) {
  measure::times sum{0, 0};
  for (auto const& [count, p] : all) {
    auto const t = measure::compare(on, p);
    sum.own += count * t.own, sum.blas += count * t.blas;
  }
  return sum.blas / sum.own;
}
cost exactness(kernels::cpu_context& on, shape const& s) {
  auto const c = s.config();
  size_t const width = size_t(c.hidden), inner = size_t(s.intermediate), tokens = size_t(s.tokens), q = c.q_width(), kv = c.kv_width();
  struct linear {
    double count;
    size_t out, in;
  };
  std::vector<linear> const layer{{1, q, width}, {2, kv, width}, {1, width, q}, {2, inner, width}, {1, width, inner}};
  std::vector<std::pair<double, measure::product>> training, decode, one;
  using measure::form;
  auto const add = [&](double count, size_t rows, size_t out, size_t in) {
    training.push_back({count, {form::forward, rows, out, in}});
    training.push_back({count, {form::input_gradient, rows, in, out}});
    training.push_back({count, {form::weight_gradient, out, in, rows}});
  };
  for (auto const& l : layer) {
    add(l.count * s.layers, tokens, l.out, l.in);
    decode.push_back({l.count * s.layers, {form::forward, size_t(s.slots), l.out, l.in}});
    one.push_back({l.count * s.layers, {form::forward, 1, l.out, l.in}});
  }
  double const chunks = double(tokens) * s.response / (s.prompt + s.response - 1) / double(rl::head_row::of({sizeof(f32)}));
  add(chunks, rl::head_row::of({sizeof(f32)}), size_t(s.vocab), width);
  decode.push_back({1, {form::forward, size_t(s.slots), size_t(s.vocab), width}});
  one.push_back({1, {form::forward, 1, size_t(s.vocab), width}});
  return {ratio_of(on, training), ratio_of(on, decode), ratio_of(on, one)};
}

int options(int argc, char** argv, shape& s, i32& rounds, i32& threads) {
  struct {
    char const* name;
    i32* value;
  } const all[] = {{"--hidden", &s.hidden},     {"--layers", &s.layers},     {"--intermediate", &s.intermediate},
                   {"--heads", &s.heads},       {"--kv-heads", &s.kv_heads}, {"--vocab", &s.vocab},
                   {"--prompts", &s.prompts},   {"--group", &s.group},       {"--prompt", &s.prompt},
                   {"--response", &s.response}, {"--slots", &s.slots},       {"--updates", &s.updates},
                   {"--tokens", &s.tokens},     {"--rounds", &rounds},       {"--threads", &threads}};
  for (int i = 1; i < argc; i += 2) {
    i32* to = nullptr;
    for (auto const& o : all)
      if (std::strcmp(o.name, argv[i]) == 0) to = o.value;
    i32 const value = to && i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
    if (value <= 0) {
      std::fprintf(stderr, "step: %s: options are", argv[i]);
      for (auto const& o : all) std::fprintf(stderr, " %s N", o.name);
      std::fprintf(stderr, ", each above 0\n");
      return 2;
    }
    *to = value;
  }
  return s.hidden % s.heads || s.heads % s.kv_heads ? (std::fprintf(stderr, "step: hidden, heads and kv-heads do not divide\n"), 2) : 0;
}
}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--shape") == 0) return bench::step_on_gpu(argc, argv);
  shape large{"20M", 384, 8, 1152, 6, 2, 8192, 16, 4, 64, 65, 64, 2, 4096};
  shape const small{"1M", 128, 5, 384, 4, 2, 258, 64, 8, 6, 4, 256, 4, 16384};
  i32 rounds = 3, threads = 0;
  if (int const wrong = options(argc, argv, large, rounds, threads)) return wrong;
  kernels::threads pool{size_t(threads)};
  cpu const on{{&pool}};
  kernels::cpu_context products{&pool};
  measure::use_threads(pool.size());
  work const w(large);
  std::printf("threads %zu, vectors of %zu bytes; best of %d, %s\n%s: %.1fM parameters (%.1fM in layers, %.1fM in the head), %d samples of "
              "%d + %d tokens, %d slots, "
              "%d updates a step\n",
              pool.size(), kernels::vector_bytes, rounds, measure::basis_name(), large.name.c_str(),
              1e-6 * double(model::parameter_count(large.config())), 1e-6 * w.body, 1e-6 * w.head, large.samples(), large.prompt,
              large.response, large.slots, large.updates);

  double peak = 0, sgemm = 0;
  arena_use memory;
  step_times t, ts;
  {
    lap laps;
    auto graph = bound_to(on, large, laps);
    fill(graph, large);
    memory = arena_of(graph);
    runner run{graph, laps};
    for (i32 r = 0; r < rounds; ++r) {
      run.step(t);
      if (r == 0) peak = resident_peak();  // before anything that is not of the step
      measure::product const square{measure::form::forward, 1024, 1024, 1024};
      auto const at = measure::compare(products, square);
      sgemm = std::fmax(sgemm, square.flops() / (at.blas > 0 ? at.blas : at.own));
    }
    run.print(0.001);
  }
  {
    lap laps;
    auto graph = bound_to(on, small, laps);
    fill(graph, small);
    runner run{graph, laps};
    for (i32 r = 0; r < 10 * rounds; ++r) run.step(ts);
    std::printf("  %s: %.2fM parameters, %d samples of %d + %d tokens\n", small.name.c_str(),
                1e-6 * double(model::parameter_count(small.config())), small.samples(), small.prompt, small.response);
    run.print(0.001);
  }
  cost const c = exactness(products, large);
  double const training = w.training(large) / t.update, decode = w.generation(large) / t.generation;
  double const engine = (ts.whole - ts.stages) / ts.whole;
#ifdef WEFT_BENCH_BLAS
  char const* const yardstick = "OpenBLAS";
#else
  char const* const yardstick = "own";
#endif
  std::printf("sgemm of %s, 1024^3      %8.1f GFLOP/s\n", yardstick, sgemm * 1e-9);
  std::printf("training                   %8.1f GFLOP/s  %5.1f %% of it (target 50)\n", training * 1e-9, 100 * training / sgemm);
  std::printf("generation, %3d slots      %8.1f GFLOP/s  %5.1f %% of it (target 35)   %.0f tokens/s\n", large.slots, decode * 1e-9,
              100 * decode / sgemm, double(large.samples()) * large.response / t.generation);
  std::printf("engine outside stages, %s  %5.2f %% of steps of %.0f ms (target 1)\n", small.name.c_str(), 100 * engine,
              1e3 * ts.whole / ts.steps);
  std::printf("peak resident memory       %8.1f MB, planned %.1f MB: %.3f of it (target 0.95-1.05)\n", 1e-6 * peak, 1e-6 * memory.planned,
              peak / memory.planned);
  std::printf("arena: KV pool %.1f MB, activations %.1f MB, logits %.1f MB; %.1f MB of the pool lie under the others\n", 1e-6 * memory.pool,
              1e-6 * memory.activations, 1e-6 * memory.logits, 1e-6 * memory.shared);
  std::printf("our products against OpenBLAS on the model's shapes: training %.2f, %d rows %.2f, one row %.2f of its speed\n", c.training,
              large.slots, c.decode, c.one_row);
  std::printf(
      "{\"threads\": %zu, \"time\": \"%s\", \"parameters\": %zu, \"yardstick\": \"%s\", \"sgemm_gflops\": %.1f, \"training\": %.4f, "
      "\"generation\": %.4f, "
      "\"engine\": %.5f, \"peak_over_plan\": %.4f, \"planned_bytes\": %.0f, \"pool_bytes_shared\": %.0f, \"products_training\": %.3f, "
      "\"products_decode\": %.3f, \"products_one_row\": %.3f}\n",
      pool.size(), measure::basis_name(), model::parameter_count(large.config()), yardstick, sgemm * 1e-9, training / sgemm, decode / sgemm,
      engine, peak / memory.planned, memory.planned, memory.shared, c.training, c.decode, c.one_row);
}
