// rollout/generate.hpp — sampling from a policy with continuous batching over a paged KV pool.
//
//   generate<T, Kv>(on, policy, request, settings, outputs, workspace) -> counters
//
// T computes; Kv is what the pool holds: T itself, or f8e4m3. Memory: workspace_sizes_of<Kv>(settings, config) elements, contents do not matter. Nothing is allocated.
// With Kv = T the recorded log-probs are those of model::forward and kernels::head_log_probs over prompt + response, bit for bit, whatever the settings and the order in
// which samples run; with f8e4m3 they are those of the forward pass that drew. A sample depends on its prompt, its parameters, the seed, the draw number and its index.
// Throws io::input_error before anything runs if the request cannot be served (rollout/check.hpp). Greedy evaluation is temperature 0 and group 1.
#pragma once
#include <cstring>

#include <weft/kernels/gemm.hpp>
#include <weft/kv/copy_page.hpp>
#include <weft/model/heads.hpp>
#include <weft/rollout/check.hpp>
#include <weft/rollout/scheduler.hpp>

namespace weft::rollout {
template <class T, class Kv, class E> class generation {
 public:
  generation(E& on, policy<T> const& p, request<T> const& r, settings const& s, outputs<T> const& out, workspace<T, Kv> const& w)
      : on_{on}
      , policy_{p}
      , config_{*p.config}
      , request_{r}
      , settings_{s}
      , out_{out}
      , work_{w}
      , real_{real_layout_of(s, *p.config)}
      , schedule_{(check(r, s, *p.config, out.capacity), s), w.ints, texts_of(r, out)} {
    for (size_t i = 0; i < samples(); ++i) prepare(i);
  }

  // One step: rows of many sequences through the model, one token for each sequence that has all its rows behind it. False: all samples are done.
  bool advance() {
    if (schedule_.done()) return false;
    schedule_.plan();
    forward();
    schedule_.start([this](i32 from, i32 to, size_t tokens) { kv::copy_page(on_, pool(), from, to, tokens); });
    ++schedule_.count.steps, schedule_.count.busy += schedule_.slots.running();
    for (size_t at = 0, n = 0; at < schedule_.drawn(); at += n) {
      n = std::min(size_t(settings_.head_rows), schedule_.drawn() - at);
      sample(schedule_.draws() + at, n);
      for (size_t i = 0; i < n; ++i) settle(size_t(schedule_.draws()[at + i].slot));
    }
    return true;
  }
  counters counted() const {
    counters c = schedule_.count;
    c.preemptions = schedule_.slots.preemptions;
    return c;
  }
  size_t in_flight() const { return schedule_.slots.occupied(); }  // samples that have started, and have not ended

 private:
  static texts texts_of(request<T> const& r, outputs<T> const& o) {
    return {r.prompts, r.group, r.prompt_capacity, o.capacity, r.prompt_ids, r.prompt_lengths, o.ids, o.lengths, o.reasons};
  }
  size_t samples() const { return size_t(request_.prompts) * size_t(request_.group); }
  size_t width() const { return size_t(config_.hidden); }
  size_t vocab() const { return size_t(config_.vocab); }
  T* hidden(size_t row) const { return work_.reals + row * width(); }
  T* waiting(size_t place) const { return work_.reals + real_.waiting + place * width(); }
  kernels::paged_pool<Kv> pool() const {
    return {work_.pool,
            size_t(config_.layers),
            size_t(config_.kv_heads),
            size_t(config_.head_dim),
            schedule_.slots.tables.data(),
            schedule_.slots.tables.width()};
  }
  sample_view<T> view(size_t i) const {
    size_t const prompt = i / size_t(request_.group), at = i * size_t(out_.capacity);
    return {i,
            i32(prompt),
            i32(i % size_t(request_.group)),
            request_.draws[prompt],
            out_.capacity,
            out_.ids + at,
            out_.log_probs + at,
            out_.log_kept + at,
            out_.entropies + at,
            out_.lengths + i,
            out_.reasons + i};
  }
  void clear(size_t i, size_t from) {  // nothing undefined behind a response
    sample_view<T> const v = view(i);
    for (size_t k = from; k < size_t(v.capacity); ++k) v.ids[k] = 0, v.log_probs[k] = v.log_kept[k] = v.entropies[k] = 0;
  }
  void prepare(size_t i) {
    sample_view<T> const v = view(i);
    *v.length = 0, *v.reason = finish::running;
    if (request_.prompt_lengths[v.prompt] > 0 && request_.watch.known && request_.watch.known(request_.watch.context, v)) {
      detail::refuse(*v.length < 0 || *v.length > v.capacity || *v.reason == finish::running,
                     "sample % of prompt % came back with length % (room for %), finish reason %", v.index, v.prompt, *v.length, v.capacity,
                     i32(*v.reason));
      ++schedule_.count.known;
    }
    clear(i, size_t(*v.length));
  }

  void forward() {
    size_t const rows = schedule_.rows();
    if (rows == 0) return;
    model::forward_paged<T, Kv>(on_, config_, policy_.rope, policy_.weights, rows, schedule_.ids(), schedule_.positions(),
                                schedule_.sequence(), pool(), work_.reals + real_.forward, hidden(0));
    for (size_t h = 0; h < schedule_.slots.held(); ++h)
      if (i32 const row = schedule_.slots.held(h).last_row; row >= 0)
        std::memcpy(waiting(schedule_.slots.place_of(h)), hidden(size_t(row)), width() * sizeof(T));
  }

  // Logits of up to head_rows draws, and a token for each. Samples of one prompt that start together draw from the same row.
  void sample(draw* draws, size_t n) {
    T* const gathered = work_.reals + real_.gathered;
    size_t rows = 0;
    for (size_t i = 0; i < n; ++i) {
      if (i == 0 || draws[i].row != draws[i - 1].row)
        std::memcpy(gathered + rows++ * width(), draws[i].row < 0 ? waiting(size_t(-1 - draws[i].row)) : hidden(size_t(draws[i].row)),
                    width() * sizeof(T));
      draws[i].logits = i32(rows) - 1;
    }
    kernels::gemm_nt(on_, rows, vocab(), width(), gathered, width(), model::head_weight(config_, policy_.weights), width(), work_.logits,
                     vocab(), false);
    kernels::parallel_for(on_, n, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        record(draws[i], work_.logits + size_t(draws[i].logits) * vocab(), work_.logits + (size_t(settings_.head_rows) + i) * vocab());
    });
  }
  void record(draw const& d, T const* logits, T* room) {  // at the end of its sample's response
    size_t const i = size_t(schedule_.slots[size_t(d.slot)].sample);
    sample_view<T> const v = view(i);
    kernels::sampling const& how = sampling_of(request_, i);
    i32 const at = *v.length, forbidden = at < how.min_new_tokens ? request_.stop.id_count : 0;
    kernels::token_rules const rules{request_.sampled_ids ? request_.sampled_ids : config_.vocab,
                                     forbidden,
                                     request_.stop.ids,
                                     request_.bias_count,
                                     request_.bias_ids,
                                     request_.bias};
    auto const t = kernels::sample_row(vocab(), logits, room, how, rules, request_.seed, v.draw, u32(v.index), u32(at));
    v.ids[at] = t.id, v.log_probs[at] = t.log_prob, v.log_kept[at] = t.log_kept, v.entropies[at] = t.entropy;
  }

  // What the token that was recorded last means for its sample.
  void settle(size_t s) {
    size_t const i = size_t(schedule_.slots[s].sample);
    sample_view<T> const v = view(i);
    size_t const at = size_t(*v.length);
    if (v.ids[at] < 0) {  // a logit is NaN or infinite, or nothing may be drawn
      clear(i, at);
      *v.reason = finish::aborted, ++schedule_.count.aborted;
    } else {
      ++*v.length, ++schedule_.count.decoded;
      *v.reason = reason_to_stop(request_.stop, v.ids, at + 1, size_t(sampling_of(request_, i).min_new_tokens),
                                 most_tokens(request_, settings_, out_.capacity, i));
      if (*v.reason == finish::running) return;
      ++schedule_.count.finished;
    }
    schedule_.slots.vacate(s);
    if (request_.watch.finished) request_.watch.finished(request_.watch.context, v);
  }

  E& on_;
  policy<T> policy_;
  model::config config_;
  request<T> request_;
  settings settings_;
  outputs<T> out_;
  workspace<T, Kv> work_;
  real_layout real_;
  scheduler schedule_;
};

template <class T, class Kv, class E>
counters generate(E& on, policy<T> const& p, request<T> const& r, settings const& s, outputs<T> const& out, workspace<T, Kv> const& w) {
  generation<T, Kv, E> it{on, p, r, s, out, w};
  while (it.advance()) {}
  return it.counted();
}
}  // namespace weft::rollout
