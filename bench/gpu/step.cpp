// gpu/step.cpp — whole GRPO and PPO steps of a model's shape on one GPU, with random weights, as one JSON line.
//
// tokens/s counts what was generated, what the critic read (PPO) and what the actor's gradient read: PPO B (R + 2 (P + R)), GRPO
// B (R + P + R), where B is the sequences of a step; tokens whose computing was shared count as if computed. Responses run to their end, or
// with --random have lengths drawn evenly from 1 to R.
#include "step.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include <weft/io/dtype.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/recipes/grpo.hpp>
#include <weft/recipes/ppo.hpp>
#include <weft/recipes/validate.hpp>

#include <program/gpu.hpp>

#include <weft/io/error.hpp>

using namespace weft;

namespace {
struct asked {
  std::string shape, recipe = "grpo", kv = "bf16", moments;
  i32 batch = 128, group = 8, prompt = 512, response = 1536, steps = 3, tokens = 0, minibatches = 1, slots = 0, recompute = -1, seconds = 0,
      warm = 2;
  bool eager = false, random = false, stages = false, masters = true, dry = false;
};
model::config config_of(std::string const& name) {
  model::config c;
  c.head_dim = 128, c.kv_heads = 8, c.max_positions = 32768;
  if (name == "qwen3-0.6b") {
    c.layers = 28, c.hidden = 1024, c.intermediate = 3072, c.heads = 16, c.vocab = 151936, c.tied = c.qk_norm = true;
    c.rope_theta = 1e6f;
  } else if (name == "llama-3-8b") {
    c.layers = 32, c.hidden = 4096, c.intermediate = 14336, c.heads = 32, c.vocab = 128256, c.rope_theta = 5e5f, c.rms_norm_eps = 1e-5f;
  } else if (name == "tiny") {
    c.layers = 4, c.hidden = 256, c.intermediate = 512, c.heads = 4, c.kv_heads = 2, c.head_dim = 64, c.vocab = 8192, c.tied = true;
  } else {
    io::refuse("--shape {}: there are qwen3-0.6b and llama-3-8b", io::show(name));
  }
  return c;
}
asked read(int argc, char** argv) {
  asked a;
  for (int i = 1; i < argc; ++i) {
    std::string const name = argv[i];
    struct {
      char const* name;
      bool* flag;
    } const flags[] = {{"--eager", &a.eager}, {"--random", &a.random}, {"--stages", &a.stages}, {"--dry-run", &a.dry}};
    struct {
      char const* name;
      i32* value;
    } const numbers[] = {{"--batch", &a.batch},         {"--group", &a.group}, {"--prompt", &a.prompt},
                         {"--response", &a.response},   {"--steps", &a.steps}, {"--tokens", &a.tokens},
                         {"--updates", &a.minibatches}, {"--slots", &a.slots}, {"--recompute", &a.recompute},
                         {"--seconds", &a.seconds},     {"--warm", &a.warm}};
    struct {
      char const* name;
      std::string* value;
    } const words[] = {{"--shape", &a.shape}, {"--recipe", &a.recipe}, {"--kv", &a.kv}, {"--moments", &a.moments}};
    bool found = name == "--no-masters";
    if (found) a.masters = false;
    for (auto const& f : flags)
      if (name == f.name) *f.flag = found = true;
    for (auto const& n : numbers)
      if (name == n.name) {
        found = true;
        *n.value = i + 1 < argc ? std::atoi(argv[++i]) : -1;
        if (*n.value < (n.value == &a.recompute ? 0 : 1)) io::refuse("{}: a number above 0", name);
      }
    for (auto const& w : words)
      if (name == w.name) found = true, *w.value = i + 1 < argc ? argv[++i] : "";
    if (!found) {
      std::string all;
      for (auto const& f : flags) all += std::string(" ") + f.name;
      for (auto const& n : numbers) all += std::string(" ") + n.name + " N";
      io::refuse("{}: options are --shape S --recipe grpo|ppo --kv bf16|fp8 --moments fp32|bf16|fp8 --no-masters{}", io::show(name), all);
    }
  }
  if (a.recipe != "grpo" && a.recipe != "ppo") io::refuse("--recipe {}: there are grpo and ppo", io::show(a.recipe));
  if (a.batch % a.group) io::refuse("--batch {} is no multiple of --group {}", a.batch, a.group);
  return a;
}

rl::reward_result score(void*, i32, i32 const* ids, i32 count) {
  f32 n = 0;
  for (i32 i = 0; i < count; ++i) n += f32(ids[i] % 3 == 0);
  return {n / f32(count), rl::reward_result::scored};
}
struct bench_run {
  asked const& a;
  model::config actor, critic;
  std::unique_ptr<program::gpu> device;
  std::unique_ptr<any_step> step;
  std::vector<double> seconds;
  bool ppo = a.recipe == "ppo";

  explicit bench_run(asked const& from) : a{from}, actor{config_of(from.shape)}, critic{actor} {
    critic.labels = 1, critic.tied = false;
    bool const large = actor.hidden > 2048;
    i32 const context = a.prompt + a.response;
    rl::generation<rl::training> g;
    g.slots = a.slots ? a.slots : std::min(a.batch, 256), g.batched_tokens = std::max(8192, g.slots), g.context = context,
    g.head_rows = g.slots;
    g.pages = i32(size_t(g.slots + a.batch / a.group) * kv::pages_for(size_t(context)));
    rl::generation<rl::validation> v;
    v.slots = 1, v.batched_tokens = 256, v.context = context, v.head_rows = 1, v.pages = i32(2 * kv::pages_for(size_t(context)));
    kernels::adamw_options o;
    std::string const moments = a.moments.empty() ? (large ? "bf16" : "fp32") : a.moments;
    o.moments = moments == "fp32"   ? kernels::moment_format::f32
                : moments == "bf16" ? kernels::moment_format::bf16
                                    : kernels::moment_format::f8;
    o.masters = a.masters;
    i32 const budget = a.tokens ? a.tokens : large ? 8192 : 16384, recompute = a.recompute >= 0 ? a.recompute : large;
    auto const bind = [&](auto const&... given) {
      weft::detail::given const all[] = {{weft::detail::given_as<std::remove_cvref_t<decltype(given)>>::tag, &given}...};
      weft::detail::givens const list{all, sizeof...(given)};
      if (a.dry) {
        using losses = rl::policy_losses;
        step = ppo             ? make_step_from<rl::ppo<losses>, rl::validate>(dry_in<bf16>{}, list)
               : a.kv == "fp8" ? make_step_from<rl::grpo<losses, local, local, f8e4m3>, rl::validate>(dry_in<bf16>{}, list)
                               : make_step_from<rl::grpo<losses>, rl::validate>(dry_in<bf16>{}, list);
      } else {
        device = program::open_gpu({a.eager, "/tmp/weft-gemm-plans"});
        step = device->bind(a.recipe + (a.kv == "fp8" ? "_fp8" : ""), list);
      }
    };
    bind(rl::prompt<rl::training>{{size_t(a.batch / a.group)}}, rl::group<rl::training>{{size_t(a.group)}},
         rl::prompt_position<rl::training>{{size_t(a.prompt)}}, rl::position<rl::training>{{size_t(a.response)}},
         rl::prompt<rl::validation>{{1}}, rl::group<rl::validation>{{1}}, rl::prompt_position<rl::validation>{{size_t(a.prompt)}},
         rl::position<rl::validation>{{size_t(a.response)}}, rl::rope_position{{size_t(context)}}, rl::lane{{1}}, rl::epoch<rl::actor>{{1}},
         rl::epoch<rl::critic>{{1}}, rl::minibatch<rl::actor>{{size_t(a.minibatches)}}, rl::minibatch<rl::critic>{{size_t(a.minibatches)}},
         rl::config<rl::actor>{actor}, rl::config<rl::critic>{critic}, g, v, rl::decoding<rl::training>{}, rl::decoding<rl::validation>{},
         rl::reward_source<rl::training>{nullptr, &score}, rl::reward_source<rl::validation>{nullptr, &score}, rl::group_baseline{},
         objective::gae_settings{}, rl::kl_in_reward{}, rl::token_budget<rl::actor>{budget, 0, recompute},
         rl::token_budget<rl::critic>{budget, 0, recompute}, rl::token_budget<rl::scoring>{budget, 0, 1}, rl::optimizer<rl::actor>{o},
         rl::optimizer<rl::critic>{o}, rl::policy_losses{}, rl::value_objective{});
  }
  template <class P> auto view() { return step->view_of<P>(); }
  template <class T> void put(void* to, std::vector<T> const& from) { step->write(to, from.data(), from.size() * sizeof(T)); }
  template <class M> void load(model::config const& c) {
    std::vector<f32> rope(view<rl::rope_table<M>>().count());
    model::fill_rope_table<f32>(c, view<rl::rope_table<M>>().template extent<rl::rope_position>(), rope.data());
    put(view<rl::rope_table<M>>().data, rope);
    size_t const n = view<rl::weights<M>>().count();
    std::vector<bf16> w(n);
    std::mt19937 random(1);
    std::vector<bf16> some(1 << 20);  // normal enough, drawn once and repeated
    for (auto& x : some) {
      f32 sum = 0;
      for (int k = 0; k < 4; ++k) sum += f32(random()) / 4294967296.0f - 0.5f;
      x = io::to_bf16(0.02f * 1.73f * sum);
    }
    model::for_each_tensor(c, [&](model::tensor const& t) {
      bool const norm = std::strstr(t.name, "norm") != nullptr;
      for (size_t i = 0; i < t.size(); ++i) w[t.offset + i] = norm ? io::to_bf16(1) : some[(t.offset * 31 + i) % some.size()];
    });
    put(view<rl::weights<M>>().data, w);
    if (auto const m = view<rl::masters<M>>(); m.count()) {
      std::vector<f32> wide(n);
      for (size_t i = 0; i < n; ++i) wide[i] = io::to_float(w[i]);
      put(m.data, wide);
    }
    put(view<rl::moments<M>>().data, std::vector<std::uint8_t>(view<rl::moments<M>>().count()));
    put(view<rl::updates_done<M>>().data, std::vector<i32>(1));
  }
  template <class M> void feed_update(int k) {
    view<rl::passes<M>>()() = 1, view<rl::learning_rate<M>>()() = 1e-6f, view<rl::epoch_seed<M>>()(0) = u32(9 + k);
  }
  void feed(int k) {
    std::mt19937 random{unsigned(k)};
    auto const p = view<rl::prompts<rl::training>>();
    for (i32& id : p) id = i32(random() % unsigned(actor.vocab));
    for (size_t i = 0; i < size_t(a.batch / a.group); ++i) {
      view<rl::prompt_lengths<rl::training>>()(i) = a.prompt;
      view<rl::rows<rl::training>>()(i) = i32(i), view<rl::draws<rl::training>>()(i) = u32(k * 1000 + int(i));
      kernels::sampling how;
      how.max_new_tokens = a.random ? 1 + i32(random() % unsigned(a.response)) : 0;
      view<rl::sampling_of<rl::training>>()(i) = how;
    }
    feed_update<rl::actor>(k);
    if (ppo) feed_update<rl::critic>(k), view<rl::kl_coefficient>()() = 0;
  }
};
}  // namespace

int bench::step_on_gpu(int argc, char** argv) try {
  asked const a = read(argc, argv);
  bench_run run(a);
  size_t planned = 0;
  for (auto const& map : run.step->memory()) planned += (map.arena + map.state) * map.count;
  if (a.dry) {
    std::printf("%s{\"shape\": \"%s\", \"recipe\": \"%s\", \"planned_bytes\": %zu}\n", run.step->plan().c_str(), a.shape.c_str(),
                a.recipe.c_str(), planned);
    return 0;
  }
  run.load<rl::actor>(run.actor);
  if (run.ppo) run.load<rl::critic>(run.critic);
  auto const& p = run.step->instance().program_at(0);
  std::vector<double> seconds(p.n), all(p.n), times;
  double tokens = 0;
  auto const began = std::chrono::steady_clock::now();
  auto const since = [](auto t) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count(); };
  program::gpu_counts before{};
  i32 const warm = a.warm;  // steps before those that count: plans of products, then captures
  for (int k = 0; k < a.steps + warm && (a.seconds == 0 || k < warm + 1 || since(began) < a.seconds); ++k) {
    run.feed(k);
    std::fill(seconds.begin(), seconds.end(), 0);
    if (k == warm) before = run.device->counts();
    run.step->time_into(seconds.data());
    auto const start = std::chrono::steady_clock::now();
    run.step->step();
    double const t = since(start), norm = double(run.view<rl::gradient_norms<rl::actor>>().flat(0));
    std::fprintf(stderr, "step %d: %.3f s, gradient norm %.4g\n", k, t, norm);
    if (k < warm) continue;
    times.push_back(t);
    for (size_t n = 0; n < p.n; ++n) all[n] += seconds[n];
    auto const n = run.view<rl::lengths<rl::training>>();
    for (size_t i = 0; i < n.count(); ++i) tokens += double(n.flat(i)) + (run.ppo ? 2 : 1) * double(a.prompt + n.flat(i));
  }
  double total = 0, busy = 0;
  for (double t : times) total += t;
  std::string stages;
  for (size_t n = 0; n < p.n; ++n) {
    busy += all[n];
    if (all[n] > 1e-4 * total) {
      char text[256];
      std::snprintf(text, sizeof text, "%s\"%s\": %.5f", stages.empty() ? "" : ", ", weft::detail::node_name(p, n).c_str(),
                    all[n] / double(times.size()));
      stages += text;
    }
  }
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  auto const part = [&](size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += times[i];
    return sum / double(to - from);
  };
  size_t const edge = std::min<size_t>(50, std::max<size_t>(1, times.size() / 3));
  auto const c = run.device->counts();
  double const n = double(times.size());
  std::printf(
      "{\"gpu\": \"%s\", \"shape\": \"%s\", \"recipe\": \"%s\", \"kv\": \"%s\", \"batch\": %d, \"group\": %d, \"prompt\": %d, "
      "\"response\": %d, "
      "\"captured\": %s, \"steps\": %zu, \"tokens_per_second\": %.1f, \"samples_per_second\": %.3f, \"step_seconds\": %.4f, \"p50\": %.4f, "
      "\"p99\": %.4f, \"first_steps\": %.4f, \"last_steps\": %.4f, \"busy\": %.4f, \"planned_bytes\": %zu, \"device_bytes\": %zu, "
      "\"host_waits_a_step\": %.1f, \"graph_launches_a_step\": %.1f, \"captures_after_warm\": %zu, \"stages\": {%s}}\n",
      run.device->name().c_str(), a.shape.c_str(), a.recipe.c_str(), a.kv.c_str(), a.batch, a.group, a.prompt, a.response,
      a.eager ? "false" : "true", times.size(), tokens / total, a.batch * n / total, total / n, sorted[sorted.size() / 2],
      sorted[std::min(sorted.size() - 1, sorted.size() * 99 / 100)], part(0, edge), part(times.size() - edge, times.size()), busy / total,
      planned, c.bytes, double(c.waits - before.waits) / n, double(c.launched - before.launched) / n, c.captured - before.captured,
      stages.c_str());
  return 0;
} catch (io::input_error const& e) {
  std::fprintf(stderr, "step: %s\n", e.what());
  return 2;
} catch (refusal const& e) {
  std::fprintf(stderr, "step: %s\n", e.what);
  return 2;
} catch (std::exception const& e) {
  std::fprintf(stderr, "step: %s\n", e.what());
  return 1;
}
