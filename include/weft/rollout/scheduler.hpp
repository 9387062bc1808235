// rollout/scheduler.hpp — who runs next. A step is one batch of rows, oldest first: one for each slot that decodes, more for those that replay after a preemption,
// and with what is left of the budget pieces of prompts. Nothing here changes what is generated, only when.
//
// While anyone is preempted nothing new starts: the pool is the bottleneck then, and what is freed belongs to the older ones.
#pragma once
#include <algorithm>

#include <weft/rollout/request.hpp>
#include <weft/rollout/slots.hpp>

namespace weft::rollout {
// The tokens of a sample: its prompt, then what was drawn so far.
struct texts {
  i32 prompts, group, prompt_capacity, capacity;
  i32 const *prompt_ids, *prompt_lengths;  // [prompts, prompt_capacity], [prompts]
  i32 const *ids, *lengths;                // [samples, capacity], [samples]
  finish const* reasons;                   // [samples]

  size_t prompt_length(size_t prompt) const { return size_t(prompt_lengths[prompt]); }
  size_t prompt_of(size_t sample) const { return sample / size_t(group); }
  size_t length(size_t sample) const { return prompt_length(prompt_of(sample)) + size_t(lengths[sample]); }
  i32 at(size_t prompt, size_t sample, size_t position) const {
    size_t const p = prompt_length(prompt);
    return position < p ? prompt_ids[prompt * size_t(prompt_capacity) + position] : ids[sample * size_t(capacity) + position - p];
  }
};

class scheduler {
 public:
  scheduler(settings const& s, i32* ints, texts const& t) : slots{s, ints}, texts_{t}, budget_{size_t(s.batched_tokens)} {
    index_layout const l = index_layout_of(s);
    ids_ = ints + l.ids, positions_ = ints + l.positions, sequence_ = ints + l.sequence;
    draws_ = reinterpret_cast<draw*>(ints + l.draws);
  }

  // The rows of this step, and who draws from them.
  void plan() {
    rows_ = drawn_ = 0;
    resume();
    for (size_t place = 0; place < slots.running() && advance_slot(place); ++place) {}
    for (size_t h = 0; h < slots.held(); ++h) slots.held(h).last_row = -1;
    if (slots.running() < slots.occupied()) return;
    open();
    for (size_t h = 0; h < slots.held() && advance_holder(h); ++h) {}
  }

  // After the forward pass: samples of the oldest prompt start in free slots. They read its full pages; copy(from, to, tokens) copies the page that is still written to.
  template <class Copy> void start(Copy const& copy) {
    while (slots.held() && slots.running() == slots.occupied() && slots.occupied() < slots.count()) {
      holder& h = slots.held(0);
      size_t const length = texts_.prompt_length(size_t(h.prompt));
      if (size_t(h.cached) < length) return;
      size_t const s = slots.occupy(h.next);
      slots[s].cached = slots[s].seen = i32(length);
      if (h.left == 1 || !share(s, length, copy)) {  // no page for a copy: it takes the holder's, and the prompt is replayed for the others
        slots.tables.move(s, slots.sequence_of(0));
        h.cached = 0;
      }
      push(draw{i32(s), -1 - i32(slots.place_of(0))});
      ++count.started;
      if (h.started++) count.saved += length;
      h.next = i32(next_sample(size_t(h.next) + 1));
      if (--h.left == 0) slots.let_go();
    }
  }

  bool done() const { return slots.occupied() == 0 && slots.held() == 0 && rest() == size_t(texts_.prompts); }
  size_t rows() const { return rows_; }
  i32 const* ids() const { return ids_; }  // [rows]
  i32 const* positions() const { return positions_; }
  i32 const* sequence() const { return sequence_; }
  size_t drawn() const { return drawn_; }
  draw* draws() { return draws_; }  // [drawn]

  rollout::slots slots;
  counters count;

 private:
  bool pending(size_t sample) const { return texts_.reasons[sample] == finish::running; }
  size_t next_sample(size_t sample) const {  // the first at or after it that is not known already
    size_t const end = size_t(texts_.prompts) * size_t(texts_.group);
    while (sample < end && !pending(sample)) ++sample;
    return sample;
  }
  size_t pending_of(size_t prompt) const {  // samples of a prompt that are to be generated
    size_t n = 0;
    for (size_t k = 0; k < size_t(texts_.group); ++k) n += pending(prompt * size_t(texts_.group) + k);
    return texts_.prompt_length(prompt) ? n : 0;
  }
  size_t rest() const {  // the next prompt with anything to generate
    size_t prompt = next_prompt_;
    while (prompt < size_t(texts_.prompts) && pending_of(prompt) == 0) ++prompt;
    return prompt;
  }
  void push(draw const& d) { new (draws_ + drawn_++) draw{d}; }

  // Positions from..to of a sequence become rows; those below `seen` were computed before.
  void emit(size_t sequence, size_t prompt, size_t sample, size_t from, size_t to, size_t seen, u64* fresh) {
    for (size_t i = from; i < to; ++i, ++rows_) {
      ids_[rows_] = texts_.at(prompt, sample, i);
      positions_[rows_] = i32(i);
      sequence_[rows_] = i32(sequence);
      if (i < seen) ++count.replayed;
      else if (fresh) ++*fresh;
    }
  }

  void resume() {
    if (slots.running() == slots.occupied()) return;
    size_t const s = slots.at(slots.running()), sample = size_t(slots[s].sample);
    if (slots.running() > 0 && slots.tables.pool().free_count() < kv::pages_for(texts_.length(sample))) return;
    slots[s].cached = i32(share_again(s, texts_.prompt_of(sample)));
    slots.resume();
  }
  bool advance_slot(size_t place) {
    size_t const s = slots.at(place), sample = size_t(slots[s].sample), length = texts_.length(sample), cached = size_t(slots[s].cached);
    size_t const owed = length - cached, rows = std::min(owed, budget_ - rows_);
    if (rows == 0 || !slots.grow_slot(place, cached + rows)) return false;
    emit(s, texts_.prompt_of(sample), sample, cached, cached + rows, size_t(slots[s].seen), nullptr);
    slots[s].cached = i32(cached + rows);
    if (slots[s].cached > slots[s].seen) slots[s].seen = slots[s].cached;
    if (rows == owed) push({i32(s), i32(rows_) - 1});
    return true;
  }

  void open() {  // prompts for slots that are free
    for (size_t prompt; slots.held() < slots.count() && slots.waiting() < slots.count() - slots.occupied(); next_prompt_ = prompt + 1) {
      if ((prompt = rest()) == size_t(texts_.prompts)) return;
      slots.hold({i32(prompt), i32(next_sample(prompt * size_t(texts_.group))), i32(pending_of(prompt))});
    }
  }
  bool advance_holder(size_t h) {  // false: the younger ones wait
    holder& it = slots.held(h);
    size_t const prompt = size_t(it.prompt), length = texts_.prompt_length(prompt), sequence = slots.sequence_of(h);
    if (size_t(it.cached) == length) return true;
    if (slots.tables.held(sequence) == 0) {
      if ((h > 0 || slots.running() > 0) && slots.tables.pool().free_count() < kv::pages_for(length)) return false;
      if (size_t(it.seen) == length) it.cached = i32(share_again(sequence, prompt));
    }
    size_t const cached = size_t(it.cached), left = budget_ - rows_, want = std::min(length, cached + left);
    size_t const to = slots.grow_holder(h, want);
    emit(sequence, prompt, 0, cached, to, size_t(it.seen), &count.prefilled);
    it.cached = i32(to);
    if (to > size_t(it.seen)) it.seen = i32(to);
    if (to == length && to > cached) it.last_row = i32(rows_) - 1;
    return to == length;
  }

  // Full pages of a prompt that some running sample of it still has: positions that need no replay.
  size_t share_again(size_t sequence, size_t prompt) {
    size_t const full = texts_.prompt_length(prompt) / kv::page_tokens;
    for (size_t place = 0; place < slots.running(); ++place) {
      size_t const s = slots.at(place);
      if (s == sequence || texts_.prompt_of(size_t(slots[s].sample)) != prompt || size_t(slots[s].cached) < full * kv::page_tokens)
        continue;
      slots.tables.share(sequence, s, full);
      return full * kv::page_tokens;
    }
    return 0;
  }
  template <class Copy> bool share(size_t s, size_t length, Copy const& copy) {
    size_t const from = slots.sequence_of(0), full = length / kv::page_tokens;
    slots.tables.share(s, from, full);
    if (full * kv::page_tokens == length) return true;
    if (!slots.grow_by_copy(s, 0)) return slots.tables.release(s), false;
    copy(slots.tables.page(from, full), slots.tables.page(s, full), length - full * kv::page_tokens);
    return true;
  }

  texts texts_;
  size_t budget_, next_prompt_ = 0, rows_ = 0, drawn_ = 0;
  i32 *ids_, *positions_, *sequence_;
  draw* draws_;
};
}  // namespace weft::rollout
