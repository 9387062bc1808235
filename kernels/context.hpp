// context.hpp — where a kernel runs. The first argument of every kernel is a context; its type picks the implementation.
#pragma once

namespace weft::kernels {
class threads;  // cpu/threads.hpp

struct cpu_context {
  threads* pool = nullptr;
};  // no pool: the calling thread alone
}  // namespace weft::kernels
