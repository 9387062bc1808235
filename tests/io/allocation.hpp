// allocation.hpp — how much a test asks of operator new (allocation.cpp replaces it for the program tests/io).
#pragma once
#include <cstddef>

namespace allocation {
void start();           // from here on
std::size_t count();    // calls
std::size_t largest();  // bytes of the largest call
}  // namespace allocation
