// allocation.cpp — operator new that counts.
#include "allocation.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> calls = 0, most = 0;  // tests start threads
void* take(std::size_t bytes) noexcept {
  ++calls;
  for (std::size_t seen = most; bytes > seen && !most.compare_exchange_weak(seen, bytes);) {}
  return std::malloc(bytes ? bytes : 1);
}
void* take_or_throw(std::size_t bytes) {
  if (void* memory = take(bytes)) return memory;
  throw std::bad_alloc();
}
}  // namespace

namespace allocation {
void start() { calls = most = 0; }
std::size_t count() { return calls; }
std::size_t largest() { return most; }
}  // namespace allocation

void* operator new(std::size_t bytes) { return take_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes); }
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes); }  // std::stable_sort asks so
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
