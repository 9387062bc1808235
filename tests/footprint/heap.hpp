// heap.hpp — how often this program asked for memory, by new or by malloc (heap.cpp stands in front of both).
#pragma once
#include <cstddef>

namespace heap {
extern bool const counted;  // false under a sanitizer, which stands there itself
std::size_t requests();
}  // namespace heap
