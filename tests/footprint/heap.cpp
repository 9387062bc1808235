// heap.cpp — malloc and its kin, counted on the way to the C library; operator new ends here too.
#include "heap.hpp"

#include <atomic>
#include <cerrno>

namespace {
std::atomic<std::size_t> count = 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
bool const heap::counted = false;
#else
bool const heap::counted = true;
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) { return ++count, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) { return ++count, __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) { return ++count, __libc_realloc(p, n); }
void* memalign(std::size_t align, std::size_t n) { return ++count, __libc_memalign(align, n); }
void* aligned_alloc(std::size_t align, std::size_t n) { return ++count, __libc_memalign(align, n); }
int posix_memalign(void** p, std::size_t align, std::size_t n) { return ++count, (*p = __libc_memalign(align, n)) ? 0 : ENOMEM; }
}
#endif

std::size_t heap::requests() { return count; }
