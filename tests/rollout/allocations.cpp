// Counts what the whole program takes from the heap. In a file of its own: a compiler that sees both sides of new and delete complains about malloc.
#include <cstdlib>
#include <new>

std::size_t lab_allocations = 0;

void* operator new(std::size_t n) {
  ++lab_allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc{};
}
void* operator new(std::size_t n, std::nothrow_t const&) noexcept {
  ++lab_allocations;
  return std::malloc(n ? n : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
