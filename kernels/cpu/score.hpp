// score.hpp (cpu)
#pragma once
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/score.hpp>

namespace weft::kernels {
template <class T> void score_rows(cpu_context& on, size_t rows, size_t labels, size_t width, T const* hidden, T const* weight, T* scores) {
  gemm_nt(on, rows, labels, width, hidden, width, weight, width, scores, labels, false);
}
template <class T> void score_rows_backward(cpu_context& on, size_t rows, size_t labels, size_t width, T const* hidden, T const* weight,
                                            T const* dscores, T* dhidden, T* dweight) {
  gemm_nn(on, rows, width, labels, dscores, labels, weight, width, dhidden, width, false);
  gemm_tn(on, labels, width, rows, dscores, labels, hidden, width, dweight, width, true);
}
}  // namespace weft::kernels
