// embedding.hpp — rows of a table by token id. Ids are checked where they enter the program, not here.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void embed(cpu_context& on, size_t tokens, size_t width, i32 const* ids /*[tokens]*/, T const* table /*[vocab, width]*/,
                              T* out /*[tokens, width]*/);
// dtable[ids[t]] += dout[t], t = 0, 1, ...: cutting the tokens into several calls changes no bit
template <class T> void embed_backward(cpu_context& on, size_t tokens, size_t width, i32 const* ids, T const* dout /*[tokens, width]*/,
                                       T* dtable /*[vocab, width], added*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/embedding.hpp>
