// distill.hpp — the reverse KL of a row's distribution to a teacher's, KL(p || q) = sum of p (log p - log q), over the whole vocabulary or over the
// teacher's `best` likeliest ids with the rest as one bucket; and the gradient of any loss of it. Both at temperature 1. Logits of both models
// exist for `chunk` rows at a time; no result depends on it.
#pragma once
#include <type_traits>
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
// What a head reads: hidden states and weight [vocab, width]
template <class T> struct head_input {
  T const* hidden;  // [rows, width]
  T const* weight;  // [vocab, width]
  size_t width;
};
// loss(row, kl) -> dLoss / dKL, called once a row, in the order of rows, on the calling thread
template <class T> struct kl_loss {
  void const* callable;
  T (*call)(void const* callable, size_t row, T kl);
  template <class F> kl_loss(F const& f)
      : callable(&f), call([](void const* c, size_t row, T kl) { return (*static_cast<F const*>(c))(row, kl); }) {}
};
template <class T> void head_reverse_kl(cpu_context& on, size_t rows, size_t vocab, head_input<T> student, head_input<T> teacher,
                                        size_t best /*0: all*/, size_t chunk, T* logits /*scratch [2, chunk, vocab]*/,
                                        std::type_identity_t<kl_loss<T>> loss, T* kl /*[rows]*/, T* dhidden /*[rows, width], written*/,
                                        T* dweight /*[vocab, width], added*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/distill.hpp>
