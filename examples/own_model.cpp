// own_model.cpp — another policy through the same ports: an Elman network, h' = tanh(E[x] + U h), logits H h', learns to say its prompt
// backwards. Parameters, forward and backward are here; advantages, loss, kernels and graph are weft's. The exit code: has it learned.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <weft/engine/cpu.hpp>
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/embedding.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/head.hpp>
#include <weft/objective/objective.hpp>
#include <weft/stages/advantage.hpp>
#include <weft/stages/reward.hpp>
using namespace weft;
using namespace weft::rl;

namespace {
using loss = objective::sum<objective::ppo_clip, objective::entropy>;
using asked = in<prompts<training>>;

struct symbol : fixed<8> {};
struct width : dim {};
struct parameter : dim { static size_t of(width const& w) { return w.size * (w.size + 2 * symbol::size); } };
struct number : fixed<3> {};
struct instant : dim {                                        // state 0 is zero, state i + 1 has read input i; the last is a target only
  static size_t of(prompt_position<training> const& p, position<training> const& r) { return p.size + r.size; }
};
struct net_weights : port<f32, parameter> {};
struct net_gradients : port<f32, parameter> {};
struct net_moments : port<f32, pair, parameter> {};
struct net_updates : port<i32> {};                            // optimizer steps so far
struct inputs : port<i32, instant, slot> {};                  // by time, so that the rows of a product are the samples
struct states : port<f32, instant, slot, width> {};
struct net_logits : port<f32, slot, symbol> {};
struct numbers : port<f32, number, position<training>, slot> {};   // of each token: inverse temperature, log-prob, entropy
struct drift : port<f32> {};                                  // largest |log-prob in training - log-prob when drawn|

template <class View> void fill(f32 value, View const& to) { std::fill(to.begin(), to.end(), value); }
template <class T> struct tensors {                           // where they lie in the flat parameters
  T *embedding /*[symbol, width]*/, *recurrent /*[width, width]*/, *head /*[symbol, width]*/;
  tensors(T* at, size_t wide) : embedding(at), recurrent(at + symbol::size * wide), head(recurrent + wide * wide) {}
};
struct network {
  size_t samples, group, first, room, wide;                   // first: length of a prompt, room: of a response
  tensors<f32 const> w;
  network(asked const& p, scratch<states> const& h, state<net_weights> const& at)
      : samples(h.extent<slot>()), group(samples / p.extent<prompt<training>>()), first(p.extent<prompt_position<training>>())
      , room(h.extent<instant>() - first), wide(h.extent<width>()), w(at.data, wide) {}

  template <class Tokens> void read(asked const& p, Tokens const& t, size_t i, i32* x /*[samples]*/) const {
    for (size_t s = 0; s < samples; ++s) x[s] = i < first ? p(s / group, i) : t(s / group, s % group, i - first);
  }
  void forward(cpu& on, i32 const* x /*[samples]*/, f32 const* h /*[samples, wide]*/, f32* next /*[samples, wide]*/) const {
    kernels::embed(on, samples, wide, x, w.embedding, next);
    kernels::gemm_nt(on, samples, wide, wide, h, wide, w.recurrent, wide, next, wide, true);
    for (size_t i = 0; i < samples * wide; ++i) next[i] = std::tanh(next[i]);
  }
  void backward(cpu& on, i32 const* x, f32 const* h, f32 const* next, f32* dnext, f32* dh /*added*/, tensors<f32> g /*added*/) const {
    for (size_t i = 0; i < samples * wide; ++i) dnext[i] *= 1 - next[i] * next[i];
    kernels::embed_backward(on, samples, wide, x, dnext, g.embedding);
    kernels::gemm_tn(on, wide, wide, samples, dnext, wide, h, wide, g.recurrent, wide, true);
    kernels::gemm_nn(on, samples, wide, wide, dnext, wide, w.recurrent, wide, dh, wide, true);
  }
};

struct generate_by_net {
  static void run(cpu& on, asked p, in<draws<training>> draw, setting<decoding<training>> how, state<net_weights> w,
                  scratch<inputs> x, scratch<states> h, scratch<net_logits> z, out<tokens<training>> t, out<lengths<training>> n,
                  out<log_probs<training>> lp) {
    network const net(p, h, w);
    fill(0, h);
    for (size_t i = 0; i + 1 < net.first + net.room; ++i) {
      net.read(p, t, i, &x(i, 0));
      net.forward(on, &x(i, 0), &h(i, 0, 0), &h(i + 1, 0, 0));
      if (i + 1 < net.first) continue;                        // still in the prompt
      f32 const* const now = &h(i + 1, 0, 0);
      kernels::gemm_nt(on, net.samples, symbol::size, net.wide, now, net.wide, net.w.head, net.wide, z.data, symbol::size, false);
      for (size_t s = 0; s < net.samples; ++s) {
        size_t const q = s / net.group, g = s % net.group, k = i + 1 - net.first;
        f32 scores[symbol::size];
        auto const d = kernels::sample_row(symbol::size, &z(s, 0), scores, {}, {}, how->seed, draw(q), u32(g), u32(k));
        t(q, g, k) = d.id, lp(q, g, k) = d.log_prob;
      }
    }
    for (i32& length : n) length = i32(net.room);
  }
};
struct backwards {                                            // the share of the answer that is right up to the first mistake
  static void run(asked p, in<tokens<training>> t, out<scores<training>> to) {
    size_t const room = t.extent<position<training>>(), group = t.extent<rl::group<training>>();
    for (size_t s = 0; s < to.count(); ++s) {
      size_t right = 0;
      while (right < room && t.flat(s * room + right) == p(s / group, room - 1 - right)) ++right;
      to.flat(s) = {f32(right) / f32(room), reward_result::scored};
    }
  }
};
struct gradient_of_net {
  static void run(cpu& on, asked p, in<tokens<training>> t, in<log_probs<training>> old, in<advantages> a, setting<loss> l,
                  state<net_weights> w, scratch<inputs> x, scratch<states> h, scratch<states> dh, scratch<net_logits> z,
                  scratch<numbers> row, out<net_gradients> g, out<drift> off) {
    network const net(p, h, w);
    tensors<f32> const to(g.data, net.wide);
    size_t const f = net.first, end = f + net.room, samples = net.samples;
    objective::counts<loss::mask> const counts{std::int64_t(t.count()), std::int64_t(samples), std::int64_t(samples), 0};
    fill(0, h), fill(0, dh), fill(0, g), fill(1, row), fill(0, off);
    for (size_t i = 0; i < end; ++i) net.read(p, t, i, &x(i, 0));
    for (size_t i = 0; i + 1 < end; ++i) net.forward(on, &x(i, 0), &h(i, 0, 0), &h(i + 1, 0, 0));
    auto const of_token = [&](size_t r, f32 log_prob, f32 entropy) {   // rows are by time, then by sample
      size_t const cell = r % samples * net.room + r / samples;
      off() = std::fmax(off(), std::fabs(log_prob - old.flat(cell)));
      objective::token<f32> const token{log_prob, log_prob, entropy, old.flat(cell), 0, a.flat(cell)};
      auto const d = l->evaluate(token, {f32(net.room), nullptr}, counts);
      return kernels::token_gradient<f32>{d.log_prob, d.entropy};
    };
    kernels::head_loss(on, net.room * samples, net.wide, symbol::size, &h(f, 0, 0), net.w.head, &x(f, 0), &row(0, 0, 0), samples, z.data,
                       of_token, &row(1, 0, 0), &row(2, 0, 0), &dh(f, 0, 0), to.head);
    for (size_t i = end; --i > 0;) net.backward(on, &x(i - 1, 0), &h(i - 1, 0, 0), &h(i, 0, 0), &dh(i, 0, 0), &dh(i - 1, 0, 0), to);
  }
};
struct adamw_of_net {
  static void run(cpu& on, in<net_gradients> g, setting<kernels::adamw_step> how, next<net_weights> w, next<net_moments> m,
                  next<net_updates> n) {
    kernels::adamw_step step = *how;
    step.step = ++n();
    kernels::adamw(on, g.count(), w.data, &m(0, 0), &m(1, 0), g.data, step, 1.0f);
  }
};
using grpo_of_net = graph<
    feed<prompts<training>>, feed<draws<training>>,
    generate_by_net, backwards, include_scored, group_advantage, gradient_of_net, adamw_of_net,
    keep<scores<training>>, keep<group_drops>, keep<drift>>;
}  // namespace

int main() {
  loss l;
  l.of<objective::entropy>().weight = 0.03;
  auto step = bind<grpo_of_net>(cpu{}, prompt<training>{32}, group<training>{8}, prompt_position<training>{2}, position<training>{2},
                                width{48}, decoding<training>{}, l, group_baseline{}, kernels::adamw_step{.lr = 5e-3, .weight_decay = 0});
  auto const random = [](size_t i, u32 stream) { return kernels::philox({{u32(i), stream, 0, 0}}, 7).word[0]; };   // a function, no state
  for (u32 i = 0; f32& w : step.view_of<net_weights>()) w = 0.3f * (2 * kernels::uniform(random(i++, 0)) - 1);
  fill(0, step.view_of<net_moments>());
  step.view_of<net_updates>()() = 0;
  double first = 0, mean = 0, off = 0;
  for (u32 k = 0, draw = 0; k <= 400; ++k) {
    for (u32 i = 0; i32& x : step.view_of<prompts<training>>()) x = i32(random(i++, k + 1) % symbol::size);
    for (u32& d : step.view_of<draws<training>>()) d = draw++;
    step.step();
    auto const all = step.view_of<scores<training>>();
    mean = 0;
    for (auto const& score : all) mean += double(score.value) / double(all.count());
    off = std::fmax(off, double(step.view_of<drift>()()));
    if (k == 0) first = mean;
    if (k % 100 == 0) std::printf("step %3u: score %.3f\n", k, mean);
  }
  std::printf("score %.3f -> %.3f; log-probs of sampling and training differ by %g\n", first, mean, off);
  return first < 0.2 && mean > 0.95 && off == 0 ? 0 : 1;
}
