// engine/cuda/generate.hpp — generation on a GPU; the meaning is rollout/generate.hpp's. All arrays lie on the device but what is borrowed
// from the host: stop strings, logit bias, the observer.
//
// The host plans in blocks: who starts, and pages for the tokens of the block. Inside a block of decode steps nothing is decided by the
// host and nothing waits for it: a kernel turns each drawn token into the next input and takes ended samples out (kernels/cuda/decode.cuh).
// A decode step is one captured graph for each number of rows: 1, 2, 4, ... above the running samples.
// Whole prompts go through the attention of training and into pages, so the samples of a group share them; a prompt longer than
// batched_tokens goes in pieces that attend to pages. With an f8e4m3 pool a whole prompt attends to its own keys unrounded, and tokens of
// a response to rounded ones, also when they are computed again.
#pragma once
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <deque>
#include <vector>

#include <weft/engine/cuda/decode_forward.hpp>
#include <weft/kernels/cuda/decode.cuh>
#include <weft/kernels/cuda/replay.cuh>
#include <weft/kv/tables.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>
#include <weft/rollout/check.hpp>
#include <weft/rollout/request.hpp>
#include <weft/rollout/settings.hpp>

namespace weft::rollout {
template <class Kv> class gpu_generation {
  using context = kernels::cuda_context;
  static constexpr size_t block_steps = 32, block_steps_while_waiting = 8;

 public:
  gpu_generation(context& on, policy<bf16> const& p, request<f32> const& r, settings const& s, outputs<f32> const& out,
                 workspace<bf16, Kv> const& w)
      : on_{on}
      , policy_{p}
      , config_{*p.config}
      , request_{r}
      , settings_{s}
      , out_{out}
      , work_{w}
      , at_{gpu_layout_of(s, *p.config)}
      , prompt_ids_(size_t(r.prompts) * size_t(r.prompt_capacity))
      , prompt_lengths_(size_t(r.prompts))
      , draws_(size_t(r.prompts))
      , how_(size_t(r.sampling_count)) {
    fetch(prompt_ids_, r.prompt_ids), fetch(prompt_lengths_, r.prompt_lengths), fetch(draws_, r.draws), fetch(how_, r.sampling);
    wait();
    request_.prompt_ids = prompt_ids_.data(), request_.prompt_lengths = prompt_lengths_.data(), request_.draws = draws_.data(),
    request_.sampling = how_.data();
    check(request_, s, config_, out.capacity);
    size_t const slots = size_t(s.slots), width = kv::pages_for(size_t(s.context)), pages = size_t(s.pages);
    table_.resize(2 * slots * width), held_.resize(2 * slots), free_.resize(pages), readers_.resize(pages);
    tables_ = kv::tables{table_.data(), held_.data(), 2 * slots, width, kv::pages{free_.data(), readers_.data(), pages}};
    samples_.resize(size_t(r.prompts) * size_t(r.group));
    clear_outputs();
    upload_rules();
    for (size_t i = 0; i < samples_.size(); ++i) meet(i);
    for (size_t k = slots; k-- > 0;) free_slots_.push_back(i32(k)), free_places_.push_back(i32(k));
  }

  counters run() {
    while (true) {
      open_prompts();
      start_samples();
      if (running_.empty()) {
        if (resuming_.empty() && holders_.empty() && returned_.empty() && next_prompt_ == size_t(request_.prompts)) break;
        continue;
      }
      decode_block();
    }
    wait();
    return count_;
  }

 private:
  struct sample_state {
    i32 slot = -1, length = 0;  // tokens of its response
    std::vector<i32> tokens;    // of its response, where the host needs them: after a preemption
    bool done = false;
  };
  struct holder {  // a prompt whose pages wait for its samples
    size_t prompt = 0;
    i32 place = 0;                     // of its last hidden state; its sequence is slots + place
    std::vector<size_t> left;          // samples that have not started, the next one last
    bool begun = false, seen = false;  // a sample has started; it was computed before
  };
  size_t sequence_of(holder const& h) const { return size_t(settings_.slots + h.place); }

  // ---- between host and device ----------------------------------------------------------------------------
  template <class X> void fetch(std::vector<X>& to, X const* from) {
    if (!to.empty()) kernels::check(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(X), cudaMemcpyDeviceToHost, on_.stream), "fetch");
  }
  template <class X> void send(void* to, X const* from, size_t n) {
    if (n) kernels::check(cudaMemcpyAsync(to, from, n * sizeof(X), cudaMemcpyHostToDevice, on_.stream), "send");
  }
  void wait() { kernels::check(cudaStreamSynchronize(on_.stream), "wait for generation"); }
  i32* ints(size_t at) const { return work_.ints + at; }
  bf16* reals(size_t at) const { return work_.reals + at; }
  size_t width() const { return size_t(config_.hidden); }
  kernels::paged_pool<Kv> pool() const {
    return {work_.pool, size_t(config_.layers), size_t(config_.kv_heads), size_t(config_.head_dim), ints(at_.table), tables_.width()};
  }

  // ---- samples ---------------------------------------------------------------------------------------------
  size_t prompt_of(size_t sample) const { return sample / size_t(request_.group); }
  size_t prompt_length(size_t prompt) const { return size_t(prompt_lengths_[prompt]); }
  void clear_outputs() {
    size_t const samples = samples_.size(), cells = samples * size_t(out_.capacity);
    for (void* x : {static_cast<void*>(out_.ids), static_cast<void*>(out_.log_probs), static_cast<void*>(out_.log_kept),
                    static_cast<void*>(out_.entropies)})
      kernels::clear(on_, x, cells * 4);
    kernels::clear(on_, out_.lengths, samples * 4), kernels::clear(on_, out_.reasons, samples * 4);
  }
  struct host_copy {  // of one sample's outputs
    std::vector<i32> ids;
    std::vector<f32> log_probs, log_kept, entropies;
    i32 length = 0;
    finish reason = finish::running;
    explicit host_copy(size_t n) : ids(n), log_probs(n), log_kept(n), entropies(n) {}
  };
  sample_view<f32> view_of(size_t i, host_copy& c) const {
    return {i,
            i32(prompt_of(i)),
            i32(i % size_t(request_.group)),
            draws_[prompt_of(i)],
            out_.capacity,
            c.ids.data(),
            c.log_probs.data(),
            c.log_kept.data(),
            c.entropies.data(),
            &c.length,
            &c.reason};
  }
  void put_copy(size_t i, host_copy const& c, size_t n) {  // its first n tokens
    size_t const at = i * size_t(out_.capacity);
    send(out_.ids + at, c.ids.data(), n), send(out_.log_probs + at, c.log_probs.data(), n), send(out_.log_kept + at, c.log_kept.data(), n),
        send(out_.entropies + at, c.entropies.data(), n);
    send(out_.lengths + i, &c.length, 1), send(out_.reasons + i, &c.reason, 1);
    wait();
  }
  void get_copy(size_t i, host_copy& c) {
    size_t const at = i * size_t(out_.capacity);
    fetch(c.ids, out_.ids + at), fetch(c.log_probs, out_.log_probs + at), fetch(c.log_kept, out_.log_kept + at),
        fetch(c.entropies, out_.entropies + at);
    kernels::check(cudaMemcpyAsync(&c.length, out_.lengths + i, 4, cudaMemcpyDeviceToHost, on_.stream), "fetch");
    kernels::check(cudaMemcpyAsync(&c.reason, out_.reasons + i, 4, cudaMemcpyDeviceToHost, on_.stream), "fetch");
    wait();
  }
  void meet(size_t i) {  // an observer may know it already
    if (prompt_length(prompt_of(i)) == 0) samples_[i].done = true;
    if (samples_[i].done || !request_.watch.known) return;
    host_copy c(size_t(out_.capacity));
    if (!request_.watch.known(request_.watch.context, view_of(i, c))) return;
    detail::refuse(c.length < 0 || c.length > out_.capacity || c.reason == finish::running,
                   "sample % came back with length % (room for %), finish reason %", i, c.length, out_.capacity, i32(c.reason));
    put_copy(i, c, size_t(c.length));
    samples_[i].done = true, ++count_.known;
  }
  void finished(size_t i, i32 reason) {
    samples_[i].done = true;
    if (finish(reason) == finish::aborted) ++count_.aborted;
    else ++count_.finished;
    if (!request_.watch.finished) return;
    host_copy c(size_t(out_.capacity));
    get_copy(i, c);
    request_.watch.finished(request_.watch.context, view_of(i, c));
  }

  // ---- rules of drawing ------------------------------------------------------------------------------------
  void upload_rules() {  // stop ids, ids with a bias, and their bias
    size_t const room = gpu_layout::rule_words / 3;
    detail::refuse(size_t(request_.stop.id_count) > room || size_t(request_.bias_count) > room, "% stop ids and % logit biases; at most %",
                   request_.stop.id_count, request_.bias_count, room);
    send(ints(at_.rules), request_.stop.ids, size_t(request_.stop.id_count));
    send(ints(at_.rules + room), request_.bias_ids, size_t(request_.bias_count));
    send(ints(at_.rules + 2 * room), request_.bias, size_t(request_.bias_count));
    ruled_ = request_.bias_count > 0 || (request_.sampled_ids > 0 && request_.sampled_ids < config_.vocab);
    for (auto const& h : how_) ruled_ = ruled_ || (h.min_new_tokens > 0 && request_.stop.id_count > 0);
  }
  kernels::token_rules rules_at(i32 produced, i32 least) const {
    size_t const room = gpu_layout::rule_words / 3;
    kernels::token_rules r;
    if (request_.sampled_ids) r.vocab_limit = request_.sampled_ids;
    r.forbidden = ints(at_.rules), r.forbidden_count = produced < least ? request_.stop.id_count : 0;
    r.bias_count = request_.bias_count, r.bias_ids = ints(at_.rules + room);
    r.bias = reinterpret_cast<f32 const*>(ints(at_.rules + 2 * room));
    return r;
  }

  // ---- the rows of a step ----------------------------------------------------------------------------------
  kernels::decode_rows rows_at(i32* at, size_t rows) const {
    auto const word = [&](size_t k) { return at + k * rows; };
    static_assert(sizeof(kernels::draw_counter) == 12 && sizeof(kernels::sampling) == 24 && sizeof(kernels::drawn<f32>) == 16 &&
                  sizeof(kernels::token_rules) <= 48 && 8 + 3 + 1 + 6 + 4 + 12 <= gpu_layout::row_words);
    return {word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
            reinterpret_cast<kernels::draw_counter*>(word(8)),
            reinterpret_cast<kernels::sampling*>(word(12)),
            ruled_ ? reinterpret_cast<kernels::token_rules*>(word(24)) : nullptr,
            reinterpret_cast<kernels::drawn<f32>*>(word(18)),
            word(22),
            word(23)};
  }
  size_t bucket(size_t n) const {
    if (n <= kernels::cuda::few_rows && model::has_decode_forward(config_)) return std::bit_ceil(n);
    return n <= 256 ? kernels::gemm_rows(n) : padded_rows(n);
  }
  // The state of these samples as rows, on the host. A sample of length n draws token n next: its input is token n - 1, at the position
  // before its place.
  void describe(std::vector<size_t> const& who, std::vector<i32> const& last_ids, size_t rows) {
    staged_.assign(rows * gpu_layout::row_words, -1);
    kernels::decode_rows const r = rows_at(staged_.data(), rows);
    for (size_t i = 0; i < rows; ++i) {
      r.reason[i] = 0, r.how[i] = {};
      r.counter[i] = {0, 0, 0};
      if (i >= who.size()) {
        if (r.rules) r.rules[i] = rules_at(0, 0);
        continue;
      }
      size_t const s = who[i], p = prompt_of(s);
      sample_state const& it = samples_[s];
      r.ids[i] = last_ids.empty() ? -1 : last_ids[i], r.positions[i] = i32(prompt_length(p)) + it.length - 1, r.sequence[i] = it.slot;
      r.sample[i] = i32(s), r.produced[i] = it.length, r.most[i] = i32(most_tokens(request_, settings_, out_.capacity, s));
      r.how[i] = sampling_of(request_, s), r.least[i] = r.how[i].min_new_tokens;
      r.counter[i] = {draws_[p], u32(s % size_t(request_.group)), u32(it.length)};
      if (r.rules) r.rules[i] = rules_at(it.length, r.least[i]);
    }
    describe_groups(who, rows, r);
  }
  // Neighbours that begin with the same whole segments of their prompt.
  void describe_groups(std::vector<size_t> const& who, size_t rows, kernels::decode_rows const& r) {
    size_t const most = kernels::cuda::most_page_members(rows, size_t(config_.heads), size_t(config_.kv_heads));
    std::fill_n(r.members, rows, 0), std::fill_n(r.shared, rows, 0);
    auto const slot = [&](size_t i) { return size_t(samples_[who[i]].slot); };
    for (size_t i = 0, n; i < who.size(); i += n) {
      size_t const segments = prompt_length(prompt_of(who[i])) / kernels::cuda::segment_keys,
                   pages = segments * kernels::cuda::segment_blocks;
      auto const same_pages = [&](size_t j) {
        for (size_t k = 0; k < pages; ++k)
          if (tables_.page(slot(i), k) != tables_.page(slot(j), k)) return false;
        return true;
      };
      for (n = 1; segments && n < most && i + n < who.size() && prompt_of(who[i + n]) == prompt_of(who[i]) && same_pages(i + n);) ++n;
      r.members[i] = i32(n), r.shared[i] = n > 1 ? i32(segments) : 0;
    }
  }
  // Logits of `rows` hidden states, a token for each, and what it means.
  void draw(bf16 const* hidden, size_t rows, kernels::decode_rows const& r) {
    size_t const vocab = size_t(config_.vocab);
    kernels::gemm_nt(on_, rows, vocab, width(), hidden, width(), model::head_weight(config_, policy_.weights), width(), work_.logits, vocab,
                     false);
    kernels::sample_rows(on_, rows, vocab, work_.logits, r.how, r.rules, request_.seed, r.counter, r.draws);
    kernels::decode_outputs const to{
        out_.ids, out_.log_probs, out_.log_kept, out_.entropies, out_.lengths, reinterpret_cast<i32*>(out_.reasons), size_t(out_.capacity)};
    kernels::advance(on_, rows, r, to, ints(at_.rules), request_.stop.id_count);
  }
  void decode_step(size_t rows) {
    kernels::decode_rows const r = rows_at(ints(at_.state), rows);
    auto const& c = config_;
    kernels::replay(on_,
                    kernels::key("decode step", rows, sizeof(Kv), c.layers, c.hidden, c.intermediate, c.heads, c.kv_heads, c.head_dim,
                                 c.vocab, c.rms_norm_eps, c.qk_norm, c.tied, c.qkv_bias, c.o_bias, c.mlp_bias, work_.ints, work_.reals,
                                 work_.logits, work_.pool, policy_.weights, policy_.rope, out_.ids, out_.log_probs, out_.lengths,
                                 out_.capacity, settings_, ruled_, request_.seed, request_.stop.id_count),
                    [&] {
                      if (model::has_decode_forward(config_))
                        model::decode_forward(on_, config_, policy_.rope, policy_.weights, rows, r.ids, r.positions, r.sequence,
                                              kernels::page_groups{r.members, r.shared}, pool(), reals(at_.forward), reals(at_.hidden));
                      else
                        model::forward_paged<bf16, Kv>(on_, config_, policy_.rope, policy_.weights, rows, r.ids, r.positions, r.sequence,
                                                       pool(), reals(at_.forward), reals(at_.hidden));
                      draw(reals(at_.hidden), rows, r);
                    });
  }
  void read_back(std::vector<size_t> const& who, i32* from, size_t rows, std::vector<i32>& last_ids) {  // lengths, and who ended
    staged_.resize(rows * gpu_layout::row_words);
    kernels::check(cudaMemcpyAsync(staged_.data(), from, 8 * rows * 4, cudaMemcpyDeviceToHost, on_.stream), "fetch");
    wait();
    kernels::decode_rows const r = rows_at(staged_.data(), rows);
    std::vector<size_t> still;
    last_ids.clear();
    std::vector<std::pair<size_t, i32>> over;
    for (size_t i = 0; i < who.size(); ++i) {
      sample_state& it = samples_[who[i]];
      count_.decoded += u64(r.produced[i] - it.length);
      it.length = r.produced[i];
      if (r.reason[i]) over.push_back({who[i], r.reason[i]});
      else still.push_back(who[i]), last_ids.push_back(r.ids[i]);
    }
    if (request_.stop.strings.count) cut_at_strings(still, last_ids, over);
    for (auto const& [s, reason] : over) {
      release(s);
      finished(s, reason);
    }
    running_.insert(running_.end(), still.begin(), still.end());
    next_ids_.insert(next_ids_.end(), last_ids.begin(), last_ids.end());
  }
  // A stop string ends a sample where its last token completes it; what was drawn after it in the block is taken back.
  void cut_at_strings(std::vector<size_t>& still, std::vector<i32>& last_ids, std::vector<std::pair<size_t, i32>>& over) {
    std::vector<std::pair<size_t, i32>> all = over;
    for (size_t s : still) all.push_back({s, 0});
    over.clear();
    for (auto [s, reason] : all) {
      host_copy c(size_t(out_.capacity));
      get_copy(s, c);
      sample_state& it = samples_[s];
      size_t const least = size_t(sampling_of(request_, s).min_new_tokens);
      size_t end = 0;
      for (size_t n = size_t(checked(s)) + 1; n <= size_t(it.length) && !end; ++n)
        for (size_t k = 0; n >= least && k < size_t(request_.stop.strings.count) && !end; ++k)
          if (completes(request_.stop.strings, k, request_.stop.tokens, c.ids.data(), n)) end = n;
      checked_[s] = it.length;
      bool const at_stop_id = end == size_t(it.length) && reason >= i32(finish::stop_id);
      if (end && !at_stop_id) {
        count_.decoded -= u64(it.length) - end;
        for (size_t k = end; k < size_t(it.length); ++k) c.ids[k] = 0, c.log_probs[k] = c.log_kept[k] = c.entropies[k] = 0;
        size_t const written = size_t(it.length);
        c.length = it.length = i32(end), c.reason = finish::stop_string, reason = i32(finish::stop_string);
        put_copy(s, c, written);
      }
      if (!reason) continue;
      over.push_back({s, reason});
      if (auto const found = std::find(still.begin(), still.end(), s); found != still.end()) {
        last_ids.erase(last_ids.begin() + (found - still.begin()));
        still.erase(found);
      }
    }
  }
  i32& checked(size_t s) {
    if (checked_.empty()) checked_.resize(samples_.size());
    return checked_[s];
  }
  void release(size_t s) {
    tables_.release(size_t(samples_[s].slot));
    free_slots_.push_back(samples_[s].slot);
    samples_[s].slot = -1;
  }

  // ---- pages -----------------------------------------------------------------------------------------------
  // Room for `positions` of a sequence: pages come from prompts that wait, youngest first, then from the youngest sample that runs, never
  // from `keep` and older ones. False: there is none.
  bool grow(size_t sequence, size_t positions, size_t keep) {
    while (tables_.room(sequence) < positions)
      if (!tables_.append(sequence) && !give_up(keep)) return false;
    return true;
  }
  bool give_up(size_t keep) {
    if (!holders_.empty()) return return_prompt(), true;
    if (running_.size() <= keep + 1) return false;
    preempt(running_.size() - 1);
    return true;
  }
  void return_prompt() {  // the youngest that waits: it is computed again
    holder& h = holders_.back();
    tables_.release(sequence_of(h));
    free_places_.push_back(h.place);
    h.seen = true;
    returned_.push_front(std::move(h));
    holders_.pop_back();
  }
  void preempt(size_t place) {  // its tokens are kept, its keys and values are computed again later
    size_t const s = running_[place];
    sample_state& it = samples_[s];
    it.tokens.resize(size_t(it.length));
    fetch(it.tokens, out_.ids + s * size_t(out_.capacity));
    wait();
    release(s);
    running_.erase(running_.begin() + long(place)), next_ids_.erase(next_ids_.begin() + long(place));
    resuming_.push_front(s);
    ++count_.preemptions;
  }

  // ---- prompts, and what is computed once more -------------------------------------------------------------
  struct text {
    size_t sequence, prompt, place;    // place: of the hidden state of its last token among those that wait
    std::vector<i32> const* response;  // or null
    size_t length;
    i32 id(gpu_generation const& g, size_t i) const {
      size_t const n = g.prompt_length(prompt);
      return i < n ? g.prompt_ids_[prompt * size_t(g.request_.prompt_capacity) + i] : (*response)[i - n];
    }
  };
  // Keys and values of whole sequences into their pages, and the hidden state of each one's last token to its place.
  void prefill(std::vector<text> const& all) {
    send_table();
    for (size_t i = 0, n; i < all.size(); i += n) {
      size_t tokens = 0;
      for (n = 0; i + n < all.size() && (n == 0 || tokens + all[i + n].length <= at_.rows); ++n) tokens += all[i + n].length;
      if (tokens > at_.rows) prefill_in_pieces(all[i]);
      else prefill_whole(all.data() + i, n, tokens);
    }
  }
  size_t prefill_rows(size_t n) const {  // few different ones: each has its plans
    size_t rows = kernels::gemm_rows(n < 256 ? n : 256);
    while (rows < n) rows *= 2;
    return std::min(rows, at_.rows);
  }
  void keep_last(text const& t, size_t k) {
    kernels::gather_rows(on_, 1, width(), ints(at_.last_rows + k), reals(at_.hidden), reals(at_.waiting + t.place * width()));
  }
  void prefill_whole(text const* all, size_t n, size_t tokens) {
    size_t const rows = prefill_rows(tokens);
    std::vector<i32> ids(rows, -1), positions(rows, -1), sequence(rows, -1), cu{0}, last;
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < all[k].length; ++i) {
        size_t const row = size_t(cu.back()) + i;
        ids[row] = all[k].id(*this, i), positions[row] = i32(i), sequence[row] = i32(all[k].sequence);
      }
      cu.push_back(cu.back() + i32(all[k].length)), last.push_back(cu.back() - 1);
    }
    send_rows(ids, positions, sequence, last);
    send(ints(at_.cu_seqlens), cu.data(), cu.size());
    wait();  // the vectors go
    model::batch_view const batch{ints(at_.ids), ints(at_.positions), ints(at_.cu_seqlens), i32(rows), i32(n)};
    auto const packed = model::attend_packed<bf16>(on_, config_, batch);
    forward(rows, [&](size_t layer, auto* q, auto* k, auto* v, auto* attended, auto* lse) {
      kernels::paged_write(on_, pool(), layer, rows, ints(at_.sequence), ints(at_.positions), k, v);
      packed(q, k, v, attended, lse);
    });
    for (size_t k = 0; k < n; ++k) keep_last(all[k], k);
  }
  void prefill_in_pieces(text const& t, size_t first = 0) {
    for (size_t from = first; from < t.length; from += at_.rows) {
      size_t const count = std::min(at_.rows, t.length - from), rows = prefill_rows(count);
      std::vector<i32> ids(rows, -1), positions(rows, -1), sequence(rows, -1), last{i32(count) - 1};
      for (size_t i = 0; i < count; ++i) ids[i] = t.id(*this, from + i), positions[i] = i32(from + i), sequence[i] = i32(t.sequence);
      send_rows(ids, positions, sequence, last);
      wait();
      forward(rows, [&](size_t layer, auto* q, auto* k, auto* v, auto* attended, auto*) {
        kernels::paged_write(on_, pool(), layer, rows, ints(at_.sequence), ints(at_.positions), k, v);
        kernels::attention_paged(on_, pool(), layer, rows, ints(at_.sequence), ints(at_.positions), size_t(config_.heads),
                                 model::attention_scale<bf16>(config_), q, attended);
      });
      keep_last(t, 0);
    }
  }
  void send_rows(std::vector<i32> const& ids, std::vector<i32> const& positions, std::vector<i32> const& sequence,
                 std::vector<i32> const& last) {
    send(ints(at_.ids), ids.data(), ids.size()), send(ints(at_.positions), positions.data(), positions.size());
    send(ints(at_.sequence), sequence.data(), sequence.size()), send(ints(at_.last_rows), last.data(), last.size());
  }
  template <class Attend> void forward(size_t rows, Attend const& attend) {
    auto const l = model::layout_of(config_);
    model::carver<bf16> take{reals(at_.forward)};
    bf16* const x = take(rows * width());
    model::layer_room<bf16> const a = model::carve_paged(config_, rows, take);
    kernels::embed(on_, rows, width(), ints(at_.ids), policy_.weights + l.embedding, x);
    for (i32 i = 0; i < config_.layers; ++i)
      model::layer_forward<bf16>(
          on_, config_, policy_.rope, model::view_of(config_, l, policy_.weights, i), rows, ints(at_.positions), x, a,
          [&](bf16 const* q, bf16 const* k, bf16 const* v, bf16* attended, f32* lse) { attend(size_t(i), q, k, v, attended, lse); }, x);
    kernels::rmsnorm(on_, rows, width(), x, policy_.weights + l.final_norm, f32(config_.rms_norm_eps), reals(at_.hidden),
                     static_cast<f32*>(nullptr));
  }
  void send_table() { send(ints(at_.table), table_.data(), table_.size()); }

  // Prompts for slots that are free; samples that were preempted come first.
  size_t room_left(size_t waiting) const { return free_slots_.size() > waiting ? free_slots_.size() - waiting : 0; }
  void open_prompts() {
    if (!resuming_.empty()) return;
    size_t waiting = 0;
    for (auto const& h : holders_) waiting += h.left.size();
    std::vector<text> all;
    while (room_left(waiting) > 0 && !free_places_.empty()) {
      holder h;
      if (!returned_.empty()) {
        h = std::move(returned_.front());
      } else {
        if (next_prompt_ == size_t(request_.prompts)) break;
        h.prompt = next_prompt_;
        for (size_t g = size_t(request_.group); g-- > 0;)
          if (size_t const s = h.prompt * size_t(request_.group) + g; !samples_[s].done) h.left.push_back(s);
      }
      size_t const length = prompt_length(h.prompt);
      bool const empty = h.left.empty();
      // room for the prompt, and for the samples to begin with
      if (!empty && tables_.pool().free_count() < kv::pages_for(length) + (running_.empty() && holders_.empty() ? 0 : h.left.size())) {
        if (!returned_.empty()) returned_.front() = std::move(h);
        break;
      }
      if (!returned_.empty()) returned_.pop_front();
      else ++next_prompt_;
      if (empty) continue;
      h.place = free_places_.back(), free_places_.pop_back();
      while (tables_.room(sequence_of(h)) < length) tables_.append(sequence_of(h));
      waiting += h.left.size();
      (h.seen ? count_.replayed : count_.prefilled) += length;
      all.push_back({sequence_of(h), h.prompt, size_t(h.place), nullptr, length});
      holders_.push_back(std::move(h));
    }
    if (!all.empty()) prefill(all);
  }

  // Samples that begin, or go on after a preemption: their first token is drawn from a hidden state that waits.
  void start_samples() {
    std::vector<size_t> who;
    std::vector<i32> rows_of, copies;
    if (!resuming_.empty()) return resume();
    std::vector<i32> ending;
    for (bool stuck = false; !holders_.empty() && !stuck && !free_slots_.empty();) {
      holder& it = holders_.front();
      size_t const length = prompt_length(it.prompt), full = length / kv::page_tokens;
      bool handed_over = false;
      while (!it.left.empty() && !free_slots_.empty() && !stuck) {
        size_t const s = it.left.back(), slot = size_t(free_slots_.back());
        tables_.share(slot, sequence_of(it), full);
        if (full * kv::page_tokens < length) {  // a page that goes on: the last sample takes it, others get a copy
          bool takes = it.left.size() == 1;
          if (!takes) {
            bool room = tables_.append(slot);
            while (!room && running_.empty() && who.empty() && holders_.size() > 1) return_prompt(), room = tables_.append(slot);
            takes = handed_over = !room && running_.empty() && who.empty();  // the prompt is computed again for the others
            stuck = !room;
            if (room)
              copies.insert(copies.end(),
                            {tables_.page(sequence_of(it), full), tables_.page(slot, full), i32(length - full * kv::page_tokens)});
          }
          if (stuck || takes) tables_.release(slot);
          if (stuck && !takes) break;  // later
          if (takes) tables_.share(slot, sequence_of(it), full + 1);
        }
        free_slots_.pop_back(), it.left.pop_back();
        samples_[s].slot = i32(slot);
        who.push_back(s), rows_of.push_back(it.place);
        ++count_.started;
        if (it.begun) count_.saved += length;
        it.begun = true;
      }
      if (handed_over) return_prompt();
      if (handed_over || !it.left.empty()) break;
      ending.push_back(it.place);
      holders_.pop_front();
    }
    if (!who.empty()) begin(who, rows_of, copies);
    for (i32 place : ending) tables_.release(size_t(settings_.slots + place)), free_places_.push_back(place);
  }
  void begin(std::vector<size_t> const& who, std::vector<i32> const& rows_of, std::vector<i32> const& copies) {
    for (size_t i = 0, n; i < who.size(); i += n) {
      n = std::min(at_.slots, who.size() - i);
      std::vector<size_t> const some(who.begin() + long(i), who.begin() + long(i + n));
      std::vector<i32> from(rows_of.begin() + long(i), rows_of.begin() + long(i + n));
      size_t const rows = bucket(n);
      from.resize(rows, -1);
      if (i == 0) {
        send(ints(at_.copies), copies.data(), copies.size());
        kernels::copy_pages(on_, pool(), copies.size() / 3, ints(at_.copies));
      }
      describe(some, {}, rows);
      send(ints(at_.starting), staged_.data(), staged_.size());
      send(ints(at_.last_rows), from.data(), from.size());
      wait();
      kernels::gather_rows(on_, rows, width(), ints(at_.last_rows), reals(at_.waiting), reals(at_.hidden));
      draw(reals(at_.hidden), rows, rows_at(ints(at_.starting), rows));
      std::vector<i32> ids;
      read_back(some, ints(at_.starting), rows, ids);
    }
  }
  void resume() {
    std::vector<text> texts;
    std::vector<size_t> who;
    std::vector<i32> places;
    while (!resuming_.empty() && !free_slots_.empty() && !free_places_.empty()) {
      size_t const s = resuming_.front(), p = prompt_of(s), length = prompt_length(p) + samples_[s].tokens.size();
      if (tables_.pool().free_count() < kv::pages_for(length) + (running_.empty() && who.empty() ? 0 : 1)) break;
      resuming_.pop_front();
      size_t const slot = size_t(free_slots_.back());
      free_slots_.pop_back();
      samples_[s].slot = i32(slot);
      while (tables_.room(slot) < length) tables_.append(slot);
      places.push_back(free_places_.back()), free_places_.pop_back();
      texts.push_back({slot, p, size_t(places.back()), &samples_[s].tokens, length});
      who.push_back(s);
      count_.replayed += length;
    }
    if (who.empty()) return;
    if constexpr (std::is_same_v<Kv, bf16>) {
      prefill(texts);
    } else {  // as they were computed: the prompt at once, the response over pages
      std::vector<text> prompts = texts;
      for (text& t : prompts) t.length = prompt_length(t.prompt);
      prefill(prompts);
      for (text const& t : texts) prefill_in_pieces(t, prompt_length(t.prompt));
    }
    begin(who, places, {});
    free_places_.insert(free_places_.end(), places.begin(), places.end());
  }

  // ---- a block ---------------------------------------------------------------------------------------------
  void decode_block() {
    bool const waiting = !holders_.empty() || !returned_.empty() || !resuming_.empty() || next_prompt_ < size_t(request_.prompts);
    size_t steps = waiting ? block_steps_while_waiting : block_steps, longest = 0;
    for (size_t s : running_) longest = std::max(longest, most_tokens(request_, settings_, out_.capacity, s) - size_t(samples_[s].length));
    steps = std::min(steps, longest);
    for (size_t place = 0; place < running_.size(); ++place) {
      size_t const s = running_[place],
                   more = std::min(steps, most_tokens(request_, settings_, out_.capacity, s) - size_t(samples_[s].length));
      if (!grow(size_t(samples_[s].slot), prompt_length(prompt_of(s)) + size_t(samples_[s].length) + more - 1, place)) {
        preempt(place);  // it was the youngest
        break;
      }
    }
    detail::refuse(running_.empty(), "the KV pool of % pages cannot go on", settings_.pages);
    std::vector<size_t> who;
    who.swap(running_);
    std::vector<i32> ids;
    ids.swap(next_ids_);
    size_t const rows = bucket(who.size());
    describe(who, ids, rows);
    send(ints(at_.state), staged_.data(), staged_.size());
    send_table();
    for (size_t k = 0; k < steps; ++k) decode_step(rows);
    count_.steps += steps, count_.busy += u64(steps) * who.size();
    read_back(who, ints(at_.state), rows, ids);
  }

  context& on_;
  policy<bf16> policy_;
  model::config config_;
  request<f32> request_;  // with arrays of the host
  settings settings_;
  outputs<f32> out_;
  workspace<bf16, Kv> work_;
  gpu_layout at_;
  std::vector<i32> prompt_ids_, prompt_lengths_;
  std::vector<u32> draws_;
  std::vector<kernels::sampling> how_;
  std::vector<i32> table_, held_, free_, readers_;
  kv::tables tables_;
  std::vector<sample_state> samples_;
  std::vector<i32> free_slots_, free_places_, next_ids_, staged_, checked_;
  std::vector<size_t> running_;            // by age
  std::deque<holder> holders_, returned_;  // by age
  std::deque<size_t> resuming_;
  size_t next_prompt_ = 0;
  bool ruled_ = false;
  counters count_;
};

template <class Kv, std::derived_from<kernels::cuda_context> E> counters generate(E& on, policy<bf16> const& p, request<f32> const& r,
                                                                                  settings const& s, outputs<f32> const& out,
                                                                                  workspace<bf16, Kv> const& w) {
  if (r.prompts == 0 || r.group == 0) return {};
  return gpu_generation<Kv>{on, p, r, s, out, w}.run();
}
}  // namespace weft::rollout
