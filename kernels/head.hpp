// head.hpp — the language-model head: log-probs and entropy of softmax(hidden weight^T * inverse_temperature), and the gradient of any
// loss of them. Logits exist for `chunk` rows at a time. No result depends on `chunk`. A row with a NaN or Inf logit has NaN entropy and
// log-prob.
#pragma once
#include <type_traits>
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
template <class T> void head_log_probs(cpu_context& on, size_t rows, size_t width, size_t vocab, T const* hidden /*[rows, width]*/,
                                       T const* weight /*[vocab, width]*/, i32 const* targets /*[rows]*/,
                                       T const* inverse_temperature /*[rows]*/, size_t chunk, T* logits /*scratch [chunk, vocab]*/,
                                       T* log_prob /*[rows]*/, T* entropy /*[rows]*/);

template <class T> struct token_gradient { T log_prob, entropy; };  // dLoss / d(log_prob), dLoss / d(entropy) of one row

// The loss of one row: called once a row, in the order of rows, on the calling thread. Any callable (size_t row, T log_prob, T entropy) ->
// token_gradient<T> converts to it, for the time of a call.
template <class T> struct row_loss {
  void const* callable;
  token_gradient<T> (*call)(void const* callable, size_t row, T log_prob, T entropy);
  template <class F> row_loss(F const& f)
      : callable(&f), call([](void const* c, size_t row, T log_prob, T entropy) { return (*static_cast<F const*>(c))(row, log_prob, entropy); }) {}
};
template <class T> void head_loss(cpu_context& on, size_t rows, size_t width, size_t vocab, T const* hidden, T const* weight,
                                  i32 const* targets, T const* inverse_temperature, size_t chunk, T* logits /*scratch [chunk, vocab]*/,
                                  std::type_identity_t<row_loss<T>> loss, T* log_prob, T* entropy, T* dhidden /*[rows, width], written*/,
                                  T* dweight /*[vocab, width], added, rows in order*/);
}  // namespace weft::kernels
#include <weft/kernels/cpu/head.hpp>
