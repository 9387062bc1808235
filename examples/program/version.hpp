// version.hpp — what a program was built from: weft, compiler, CUDA, NCCL, BLAS, instruction set.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace program {
std::vector<std::pair<std::string, std::string>> versions();
}  // namespace program
