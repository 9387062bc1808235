// explain.hpp — what knobs cost: each is turned once, the plan is sized again, and the time of a step is predicted from its operations.
// Operations as in bench/step: generation 2 x weights x tokens and attention over the context; an update three forwards, four with
// activations computed again. The time is that of answers that all use max_response_length, at shares of this machine's matrix product
// that bench/RESULTS.md measured: 0.8 for updates, 0.5 for generation. A prediction, good to a factor of two or so.
#pragma once
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <weft/kernels/gemm.hpp>
#include <weft/model/layout.hpp>
#include <weft/train/memory_parts.hpp>
#include <weft/train/settings.hpp>

namespace weft::train {
struct step_operations {
  double generation = 0, update = 0;
};
inline step_operations operations_of(model::config const& c, options const& o, bool supervised, bool has_critic, bool has_reference) {
  batch_sizes const z = sizes_of(o);
  double const head = double(c.hidden) * double(c.vocab), layers = double(model::parameter_count(c)) - head * (c.tied ? 1 : 2);
  double const prompts = double(z.prompts), samples = prompts * double(z.group), prompt = double(z.prompt_room), answer = double(z.room);
  double const tokens = samples * (prompt + answer), pairs = double(c.layers) * double(c.heads) * double(c.head_dim);
  double const attention = 2 * pairs * samples * (prompt + answer) * (prompt + answer), forward = 2 * layers * tokens + attention;
  step_operations all;
  if (!supervised)
    all.generation = 2 * layers * (prompts * prompt + samples * answer) + 2 * head * samples * answer +
                     4 * pairs * (samples * answer * (prompt + answer / 2) + prompts * prompt * prompt / 2);
  double const epochs = supervised ? 1 : double(o.actor.ppo_epochs), critic_epochs = double(o.critic.ppo_epochs);
  all.update = epochs * (forward * (o.actor.enable_gradient_checkpointing ? 4 : 3) + 6 * head * samples * answer);
  if (has_reference) all.update += forward + 2 * head * samples * answer;
  if (has_critic) all.update += forward + critic_epochs * forward * (o.critic.enable_gradient_checkpointing ? 4 : 3);
  return all;
}
inline double product_rate(kernels::cpu_context& on) {  // operations a second of a product of 512 x 512 x 512
  constexpr size_t n = 512;
  std::vector<f32> const a(n * n, 0.5f);
  std::vector<f32> c(n * n);
  double best = 1e9;
  for (int i = 0; i < 6; ++i) {
    auto const start = std::chrono::steady_clock::now();
    kernels::gemm_nt(on, n, n, n, a.data(), n, a.data(), n, c.data(), n, false);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * n * n * n / best;
}
struct prediction {
  double rate = 1;
  double seconds(step_operations const& s) const { return s.generation / (0.5 * rate) + s.update / (0.8 * rate); }
};

struct trial {  // one knob, turned once
  std::string knob, turned;
  std::function<void(options&)> turn;
};
inline std::vector<trial> trials(options const& o, bool supervised) {
  std::vector<trial> all;
  auto const number = [&](char const* knob, auto at, std::int64_t then) {
    options copy = o;
    std::int64_t const now = at(copy);
    if (now != then) all.push_back({knob, fmt::format("{} -> {}", now, then), [=](options& x) { at(x) = then; }});
  };
  auto const flag = [&](char const* knob, auto at) {
    options copy = o;
    bool const now = at(copy);
    all.push_back({knob, fmt::format("{} -> {}", now, !now), [=](options& x) { at(x) = !now; }});
  };
  number("data.train_batch_size", [](options& x) -> auto& { return x.data.train_batch_size; }, o.data.train_batch_size * 2);
  number("data.max_prompt_length", [](options& x) -> auto& { return x.data.max_prompt_length; }, o.data.max_prompt_length * 2);
  number("data.max_response_length", [](options& x) -> auto& { return x.data.max_response_length; }, o.data.max_response_length * 2);
  number(
      "actor.ppo_max_token_len_per_gpu", [](options& x) -> auto& { return x.actor.ppo_max_token_len_per_gpu; },
      o.actor.ppo_max_token_len_per_gpu * 2);
  flag("actor_rollout_ref.model.enable_gradient_checkpointing", [](options& x) -> auto& { return x.actor.enable_gradient_checkpointing; });
  if (supervised) return all;
  std::int64_t const samples = o.data.train_batch_size * o.rollout.n;
  number("rollout.n", [](options& x) -> auto& { return x.rollout.n; }, o.rollout.n * 2);
  number(
      "rollout.max_num_seqs", [](options& x) -> auto& { return x.rollout.max_num_seqs; },
      std::max<std::int64_t>(1, std::min(o.rollout.max_num_seqs, samples) / 2));
  number(
      "rollout.max_num_batched_tokens", [](options& x) -> auto& { return x.rollout.max_num_batched_tokens; },
      std::max<std::int64_t>(1, o.rollout.max_num_batched_tokens / 2));
  number(
      "actor.ppo_mini_batch_size", [](options& x) -> auto& { return x.actor.ppo_mini_batch_size; },
      std::max<std::int64_t>(1, o.actor.ppo_mini_batch_size / 2));
  number("actor.ppo_epochs", [](options& x) -> auto& { return x.actor.ppo_epochs; }, o.actor.ppo_epochs * 2);
  return all;
}

// bytes(options): of the plan; it may refuse.
inline std::string explanation(options const& o, model::config const& c, bool supervised, bool has_critic, bool has_reference, double rate,
                               std::function<double(options const&)> const& bytes) {
  prediction const at{rate};
  auto const seconds = [&](options const& x) { return at.seconds(operations_of(c, x, supervised, has_critic, has_reference)); };
  double const now_bytes = bytes(o), now = seconds(o);
  auto const changed = [](double by, std::string const& shown) { return by == 0 ? "same" : (by > 0 ? "+" : "-") + shown; };
  std::string text = fmt::format("knobs, each turned alone: {} and at most {:.3g} s a step now, at {:.0f} GFLOP/s in a product\n",
                                 shown_bytes(now_bytes), now, rate / 1e9);
  for (trial const& t : trials(o, supervised)) {
    options x = o;
    t.turn(x);
    try {
      double const more = bytes(x) - now_bytes, longer = seconds(x) - now;
      text += fmt::format("  {:<54} {:<18} {:>12} {:>12}\n", t.knob, t.turned, changed(more, shown_bytes(std::abs(more))),
                          changed(longer, fmt::format("{:.3g} s", std::abs(longer))));
    } catch (io::input_error const& e) { text += fmt::format("  {:<54} {:<18} refused: {}\n", t.knob, t.turned, e.what()); }
  }
  return text;
}
}  // namespace weft::train
