// allocation.cpp — operator new that counts.
#include "allocation.hpp"

#include <cstdlib>
#include <new>

namespace {
std::size_t calls = 0, most = 0;
void* take(std::size_t bytes) {
  ++calls;
  if (bytes > most) most = bytes;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
}  // namespace

namespace allocation {
void start() { calls = most = 0; }
std::size_t count() { return calls; }
std::size_t largest() { return most; }
}  // namespace allocation

void* operator new(std::size_t bytes) { return take(bytes); }
void* operator new[](std::size_t bytes) { return take(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
