// rollout/slots.hpp — who holds KV pages, by age. A slot runs one sample. A holder keeps a prompt for those of its samples that have not started. The order of age is
// that of the samples, slots before holders; whoever needs a page may take it from the youngest, so the oldest always moves on.
//
//   holder:  waiting -> prefilling -> ready -> (its last sample has started) gone
//   slot:    free -> running <-> preempted -> free          running slots are older than preempted ones
#pragma once
#include <new>

#include <weft/kv/tables.hpp>
#include <weft/rollout/settings.hpp>

namespace weft::rollout {
struct slot {
  i32 sample = -1;  // -1: free
  i32 cached = 0;   // positions whose keys and values are in its pages
  i32 seen = 0;     // positions that were once computed: below it is replay
};
struct holder {
  i32 prompt = -1;
  i32 next = 0, left = 0;  // the sample that starts next; samples that have not started
  i32 started = 0;
  i32 cached = 0, seen = 0;
  i32 last_row = -1;  // row of this step that holds the last token of the prompt
};
struct draw {  // one token to be drawn
  i32 slot;
  i32 row;         // of this step, or -1 - h for the prompt of holder place h
  i32 logits = 0;  // row of logits
};
static_assert(sizeof(slot) <= slot_ints * sizeof(i32) && sizeof(holder) <= holder_ints * sizeof(i32) &&
              sizeof(draw) <= draw_ints * sizeof(i32));

class slots {
 public:
  slots(settings const& s, i32* ints) : count_{size_t(s.slots)} {
    index_layout const l = index_layout_of(s);
    tables = kv::tables{ints + l.table, ints + l.held, 2 * count_, kv::pages_for(size_t(s.context)),
                        kv::pages{ints + l.free_pages, ints + l.readers, size_t(s.pages)}};
    slots_ = make<slot>(ints + l.slots);
    holders_ = make<holder>(ints + l.holders);
    order_ = ints + l.order;
  }

  // ---- slots by age: places 0..running run, places running..occupied are preempted ----------------------
  size_t count() const { return count_; }
  size_t running() const { return running_; }
  size_t occupied() const { return occupied_; }
  size_t at(size_t place) const { return size_t(order_[place]); }  // the slot; it is also its sequence
  slot& operator[](size_t s) { return slots_[s]; }

  size_t occupy(i32 sample) {  // the youngest; nobody may be preempted
    size_t s = 0;
    while (slots_[s].sample >= 0) ++s;
    slots_[s] = {sample};
    order_[occupied_++] = i32(s), ++running_;
    return s;
  }
  void vacate(size_t s) {
    size_t place = 0;
    while (at(place) != s) ++place;
    for (--occupied_, --running_; place < occupied_; ++place) order_[place] = order_[place + 1];
    tables.release(s);
    slots_[s] = {};
  }
  void preempt() {  // the youngest that runs
    size_t const s = at(--running_);
    tables.release(s);
    slots_[s].cached = 0, ++preemptions;
  }
  void resume() { ++running_; }  // the oldest that is preempted

  // ---- holders, first come first served: 0..held ---------------------------------------------------------
  size_t held() const { return held_; }
  size_t place_of(size_t h) const { return (first_ + h) % count_; }
  size_t sequence_of(size_t h) const { return count_ + place_of(h); }
  holder& held(size_t h) { return holders_[place_of(h)]; }
  void hold(holder const& it) { held(held_++) = it; }
  void let_go() { first_ = place_of(1), --held_; }  // the oldest; its last sample has taken its pages
  size_t waiting() {                                // samples of held prompts that have not started
    size_t n = 0;
    for (size_t h = 0; h < held_; ++h) n += size_t(held(h).left);
    return n;
  }

  // ---- pages ---------------------------------------------------------------------------------------------
  bool grow_slot(size_t place, size_t positions) {  // false: it was the youngest with pages, and is preempted now
    size_t const s = at(place);
    while (tables.room(s) < positions) {
      if (tables.append(s) || evict_holder(0)) continue;
      preempt();
      if (running_ == place) return false;
    }
    return true;
  }
  size_t grow_holder(size_t h, size_t positions) {  // positions that there is room for
    while (tables.room(sequence_of(h)) < positions && (tables.append(sequence_of(h)) || evict_holder(h + 1))) {}
    size_t const room = tables.room(sequence_of(h));
    return room < positions ? room : positions;
  }
  bool grow_by_copy(size_t s, size_t h) {  // a page for slot s, not from holders up to h
    while (!tables.append(s))
      if (!evict_holder(h + 1)) return false;
    return true;
  }

  kv::tables tables;
  u64 preemptions = 0;

 private:
  template <class S> S* make(i32* at) {
    S* const first = reinterpret_cast<S*>(at);
    for (size_t i = 0; i < count_; ++i) new (first + i) S{};
    return first;
  }
  bool evict_holder(size_t oldest) {  // the youngest holder with pages, if it is `oldest` or younger
    for (size_t h = held_; h-- > oldest;)
      if (tables.held(sequence_of(h))) return tables.release(sequence_of(h)), held(h).cached = 0, true;
    return false;
  }

  size_t count_, running_ = 0, occupied_ = 0, first_ = 0, held_ = 0;
  slot* slots_;
  holder* holders_;
  i32* order_;
};
}  // namespace weft::rollout
