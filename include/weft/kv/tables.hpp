// kv/tables.hpp — the page table: for each sequence, the pages that hold its positions 0..63, 64..127, and so on. Full pages of one prompt may stand in many rows
// of the table; a page that is still written to stands in one.
#pragma once
#include <weft/kv/pages.hpp>

namespace weft::kv {
class tables {
 public:
  tables() = default;
  tables(i32* table, i32* held, size_t sequences, size_t width, kv::pages pool)  // [sequences, width], [sequences]
      : table_{table}, held_{held}, width_{width}, pages_{pool} {
    for (size_t i = 0; i < sequences * width; ++i) table_[i] = 0;
    for (size_t i = 0; i < sequences; ++i) held_[i] = 0;
  }
  kv::pages const& pool() const { return pages_; }
  i32 const* data() const { return table_; }
  size_t width() const { return width_; }
  size_t held(size_t sequence) const { return size_t(held_[sequence]); }
  size_t room(size_t sequence) const { return held(sequence) * page_tokens; }  // positions that its pages hold
  i32 page(size_t sequence, size_t index) const { return table_[sequence * width_ + index]; }

  bool append(size_t sequence) {  // one more page; false: none is free
    i32 const page = pages_.take();
    if (page < 0) return false;
    push(sequence, page);
    return true;
  }
  void share(size_t to, size_t from, size_t count) {  // `to` holds nothing yet and reads the first `count` pages of `from`
    for (size_t i = 0; i < count; ++i) pages_.share(page(from, i)), push(to, page(from, i));
  }
  void move(size_t to, size_t from) {  // `to` holds nothing yet and gets all that `from` holds
    for (size_t i = 0; i < held(from); ++i) push(to, page(from, i));
    held_[from] = 0;
  }
  void release(size_t sequence) {
    while (held_[sequence] > 0) pages_.release(page(sequence, size_t(--held_[sequence])));
  }

 private:
  void push(size_t sequence, i32 page) { table_[sequence * width_ + size_t(held_[sequence]++)] = page; }

  i32* table_ = nullptr;
  i32* held_ = nullptr;
  size_t width_ = 0;
  kv::pages pages_;
};
}  // namespace weft::kv
