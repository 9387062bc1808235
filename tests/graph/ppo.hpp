// ppo.hpp — the shape of a PPO step with the simplest arithmetic: many edges, nested loops, two models, a host stage, in-place updates.
#pragma once
#include "weft/weft.hpp"

namespace ppo_test {
using namespace weft;
// ---- dims ------------------------------------------------------------------------------------------
struct sample : dim {};    // a prompt with one response
struct position : dim {};  // room for a response; lengths says how much of it is one
struct slot : dim {
  static size_t of(sample const& s) { return s.size; }
};                      // samples, in the order of an epoch
struct epoch : dim {};  // carried by what is recorded per epoch: otherwise a repetition
struct minibatch : part<slot> {};
struct microbatch : dim {};  // the most there can be; bin_count says how many there are
struct lane : axis {};       // data-parallel devices of the trainer
struct spread : axis {};     // and of the rollout
struct row : dim {};         // samples in a micro-batch, at most
struct pair : fixed<2> {};
struct page_tokens : fixed<64> {};

struct actor {};
struct reference {};
struct critic {};  // models
template <class M> struct config { size_t layers, width, vocab; };
template <class M> struct parameters : dim {
  static size_t of(config<M> const& c) { return c.layers * c.width * c.width + c.vocab * c.width; }
};
template <class M> struct kv_width : dim {
  static size_t of(config<M> const& c) { return 2 * c.layers * c.width; }
};
template <class M> struct width : dim {
  static size_t of(config<M> const& c) { return c.width; }
};
template <class M> struct vocab : dim {
  static size_t of(config<M> const& c) { return c.vocab; }
};
struct pages : dim {
  static size_t of(sample const& s, position const& p) { return s.size * ((p.size + 63) / 64); }
};

// ---- settings --------------------------------------------------------------------------------------
struct sampling {
  f32 temperature = 1;
};
struct kl_penalty {
  f32 beta = 0.25f;
};
struct discount {
  f32 gamma = 1, lambda = 0.5f;
};
struct clip {
  f32 range = 0.25f;
};
struct budget {
  i32 tokens = 8;
};  // of a micro-batch
struct learning {
  f32 rate = 0.0078125f;
};

// ---- ports -----------------------------------------------------------------------------------------
struct prompts : port<i32, sample> {};
struct tokens : port<i32, sample, position> {};
struct lengths : port<i32, sample> {};
struct logprobs : port<f32, sample, position> {};
struct ref_logprobs : port<f32, sample, position> {};
struct scores : port<f32, sample> {};
struct values : port<f32, sample, position> {};
struct token_reward : port<f32, sample, position> {};
struct advantages : port<f32, sample, position> {};
struct returns : port<f32, sample, position> {};
struct advantage_sums : sum_over<port<f32, pair>, sample> {};  // sum and count
struct epoch_seed : port<i32, epoch> {};
struct order : port<i32, slot> {};
struct bins : port<i32, microbatch, lane, row> {};  // samples of a micro-batch, by their place on the lane; -1: none
struct bin_count : port<i32> {};
struct token_count : port<i32> {};  // the denominator: counted once per mini-batch, over all lanes
template <class M> struct weights : port<f32, parameters<M>> {};
template <class M> struct moments : port<f32, pair, parameters<M>> {};
template <class M> struct gradients : sum_over<port<f32, parameters<M>>, sample> {};
template <class M> struct loss : sum_over<port<f32, epoch, minibatch>, sample> {};
template <class M> struct grad_norm : port<f32, epoch, minibatch> {};
template <class M> struct kv_pool : port<bf16, pages, page_tokens, kv_width<M>> {};
template <class M> struct activations : port<bf16, sample, position, width<M>> {};
template <class M> struct hidden : port<bf16, row, position, width<M>> {};
template <class M> struct logits : port<f32, position, vocab<M>> {};
struct metrics : port<f32, pair> {};

// ---- stages ----------------------------------------------------------------------------------------
template <class M> struct generate {
  static void run(in<prompts> p, state<weights<M>> w, setting<config<M>>, setting<sampling> s, scratch<kv_pool<M>> kv, out<tokens> t,
                  out<lengths> n, out<logprobs> lp) {
    for (size_t i = 0; i < kv.count(); ++i) kv.flat(i).bits = 0xffff;  // whoever shares these bytes will notice
    for (size_t b = 0; b < n.count(); ++b) {
      n(b) = 2 + p(b) % i32(t.template extent<position>() - 1);
      for (size_t k = 0; k < t.template extent<position>(); ++k) {
        t(b, k) = i32(size_t(p(b)) * 7 + k * k) % 8;
        lp(b, k) = w(size_t(t(b, k))) * s->temperature;
      }
    }
  }
};
struct reward {  // any function of text: runs on the host
  static void run(in<tokens> t, in<lengths> n, out<scores> r) {
    for (size_t b = 0; b < r.count(); ++b) {
      r(b) = 0;
      for (i32 k = 0; k < n(b); ++k) r(b) += f32(t(b, k) % 2);
    }
  }
};
template <class M> struct reference_logprobs {
  static void run(in<tokens> t, in<lengths>, state<weights<M>> w, scratch<activations<M>>, scratch<logits<M>>, out<ref_logprobs> lp) {
    for (size_t i = 0; i < t.count(); ++i) lp.flat(i) = w(size_t(t.flat(i)));
  }
};
template <class M> struct state_values {
  static void run(in<tokens> t, in<lengths>, state<weights<M>> w, scratch<activations<M>>, out<values> v) {
    for (size_t i = 0; i < t.count(); ++i) v.flat(i) = w(size_t(t.flat(i)));
  }
};
struct token_rewards {  // -beta kl on every token, the score on the last
  static void run(in<scores> s, in<lengths> n, in<logprobs> lp, in<ref_logprobs> ref, setting<kl_penalty> kl, out<token_reward> r) {
    for (size_t b = 0; b < s.count(); ++b)
      for (size_t k = 0; k < r.extent<position>(); ++k) r(b, k) = -kl->beta * (lp(b, k) - ref(b, k)) + (i32(k) == n(b) - 1 ? s(b) : 0);
  }
};
struct gae {
  static void run(in<token_reward> r, in<values> v, in<lengths> n, setting<discount> d, out<advantages> a, out<returns> g) {
    for (size_t i = 0; i < a.count(); ++i) a.flat(i) = g.flat(i) = 0;
    for (size_t b = 0; b < n.count(); ++b) {
      f32 next_v = 0, sum = 0;
      for (size_t k = size_t(n(b)); k-- > 0;) {
        sum = r(b, k) + d->gamma * next_v - v(b, k) + d->gamma * d->lambda * sum;
        next_v = v(b, k);
        a(b, k) = sum;
        g(b, k) = sum + v(b, k);
      }
    }
  }
};
struct sum_advantages {
  static void run(in<advantages> a, in<lengths> n, out<advantage_sums> s) {
    s(0) = s(1) = 0;
    for (size_t b = 0; b < n.count(); ++b)
      for (i32 k = 0; k < n(b); ++k) {
        s(0) += a(b, k);
        s(1) += 1;
      }
  }
};
struct whiten {  // in place: sum_advantages feeds it, so it reads the old values
  static void run(in<advantage_sums> s, in<lengths> n, inout<advantages> a) {
    for (size_t b = 0; b < n.count(); ++b)
      for (i32 k = 0; k < n(b); ++k) a(b, k) -= s(0) / s(1);
  }
};
struct shuffle {
  static void run(in<epoch_seed> e, out<order> o) {
    for (size_t i = 0; i < o.count(); ++i) o(i) = i32((i * 3 + size_t(e(0))) % o.count());
  }
};
struct pack {  // a pure function of all lengths: the same on every device
  static void run(in<order> o, in<lengths> n, setting<budget> most, out<bins> b, out<bin_count> used, out<token_count> count) {
    size_t const L = b.extent<lane>();
    for (size_t i = 0; i < b.count(); ++i) b.flat(i) = -1;
    used() = 0;
    count() = 0;
    for (size_t l = 0; l < L; ++l) {
      size_t m = 0, r = 0;
      i32 room = most->tokens;
      for (size_t i = 0; i < o.count(); ++i) {
        size_t const s = size_t(o(i));
        if (s < share(n.count(), L, l).begin || s >= share(n.count(), L, l).end) continue;
        if (r && (n(s) > room || r == b.extent<row>())) {
          ++m;
          r = 0;
          room = most->tokens;
        }
        b(m, l, r++) = i32(s - share(n.count(), L, l).begin);
        room -= n(s);
        count() += n(s);
      }
      if (used() < i32(m + 1)) used() = i32(m + 1);
    }
  }
};
template <class... P> struct zero {
  static void run(out<P>... p) {
    (
        (void)[&] {
          for (size_t i = 0; i < p.count(); ++i) p.flat(i) = 0;
        }(),
        ...);
  }
};
template <class M> struct policy_loss_and_backward {
  static void run(in<bins> b, in<tokens> t, in<lengths> n, in<logprobs> old, in<advantages> a, in<token_count> N, state<weights<M>> w,
                  setting<clip> c, scratch<hidden<M>>, scratch<logits<M>>, inout<gradients<M>> g, inout<loss<M>> l) {
    for (size_t i = 0; i < b.count(); ++i)
      if (i32 const s = b.flat(i); s >= 0)
        for (i32 k = 0; k < n(s); ++k) {
          f32 const ratio = 1 + w(size_t(t(s, k))) - old(s, k);  // exactly 1 in the first mini-batch
          f32 const far = ratio > 1 + c->range || ratio < 1 - c->range ? 0.0f : 1.0f;
          g(size_t(t(s, k))) -= far * a(s, k) / f32(N());
          l(0, 0) -= ratio * a(s, k) / f32(N());
        }
  }
};
template <class M> struct value_loss_and_backward {
  static void run(in<bins> b, in<tokens> t, in<lengths> n, in<returns> r, in<token_count> N, state<weights<M>> w, scratch<hidden<M>>,
                  inout<gradients<M>> g, inout<loss<M>> l) {
    for (size_t i = 0; i < b.count(); ++i)
      if (i32 const s = b.flat(i); s >= 0)
        for (i32 k = 0; k < n(s); ++k) {
          f32 const error = w(size_t(t(s, k))) - r(s, k);
          g(size_t(t(s, k))) += error / f32(N());
          l(0, 0) += error * error / f32(N());
        }
  }
};
template <class M> struct adamw {
  static void run(in<gradients<M>> g, setting<learning> lr, next<weights<M>> w, next<moments<M>> m, out<grad_norm<M>> norm) {
    norm(0, 0) = 0;
    for (size_t k = 0; k < g.count(); ++k) {
      norm(0, 0) += g(k) * g(k);
      m(0, k) += g(k);
      w(k) -= lr->rate * g(k);
    }
  }
};
struct summary {
  static void run(in<loss<actor>> policy, in<loss<critic>> value, in<grad_norm<actor>> a, in<grad_norm<critic>> c, out<metrics> m) {
    m(0) = m(1) = 0;
    for (size_t i = 0; i < a.count(); ++i) {
      m(0) += policy.flat(i) + a.flat(i);
      m(1) += value.flat(i) + c.flat(i);
    }
  }
};

// One PPO step. Reads top to bottom like the dataflow; Rollout and Trainer say how devices cut it.
template <class Rollout = local, class Trainer = local> using ppo =
    graph<feed<prompts>, feed<epoch_seed>, at<Rollout, generate<actor>>, at<host, reward>,
          at<Trainer, reference_logprobs<reference>, state_values<critic>, token_rewards, gae, sum_advantages, whiten>,
          each<epoch, shuffle,
               each<minibatch, pack,
                    at<Trainer, zero<gradients<actor>, gradients<critic>, loss<actor>, loss<critic>>,
                       each<upto<microbatch, bin_count>, policy_loss_and_backward<actor>, value_loss_and_backward<critic>>, adamw<actor>,
                       adamw<critic>>>>,
          summary, keep<metrics>>;
}  // namespace ppo_test
