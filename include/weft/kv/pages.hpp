// kv/pages.hpp — which pages of a static pool are free, and how many sequences read each of the others. The arrays come from outside; nothing is ever allocated.
#pragma once
#include <weft/kernels/paged.hpp>

namespace weft::kv {
using kernels::page_tokens;  // a page: keys and values of 64 neighbouring positions, in all layers
constexpr size_t pages_for(size_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

class pages {
 public:
  pages() = default;
  pages(i32* free, i32* readers, size_t count) : free_{free}, readers_{readers}, count_{count} { reset(); }  // [count] each

  void reset() {  // every page is free, the lowest number is taken first
    for (size_t i = 0; i < count_; ++i) free_[i] = i32(count_ - 1 - i), readers_[i] = 0;
    free_count_ = count_;
  }
  size_t count() const { return count_; }
  size_t free_count() const { return free_count_; }
  i32 readers(i32 page) const { return readers_[page]; }

  i32 take() {  // -1: none is free
    if (free_count_ == 0) return -1;
    i32 const page = free_[--free_count_];
    readers_[page] = 1;
    return page;
  }
  void share(i32 page) { ++readers_[page]; }
  void release(i32 page) {
    if (--readers_[page] == 0) free_[free_count_++] = page;
  }

 private:
  i32* free_ = nullptr;     // a stack: the first free_count_ are free
  i32* readers_ = nullptr;  // [page]: sequences that hold it
  size_t count_ = 0, free_count_ = 0;
};
}  // namespace weft::kv
