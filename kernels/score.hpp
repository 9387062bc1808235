// score.hpp — the score head: `labels` numbers for each row, of a critic or a reward model. The products of gemm.hpp on the CPU; on a GPU
// their sums in f32.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
// scores [rows, labels] = hidden [rows, width] weight [labels, width]^T
template <class T> void score_rows(cpu_context& on, size_t rows, size_t labels, size_t width, T const* hidden, T const* weight, T* scores);
// dhidden is written, dweight [labels, width] added to
template <class T> void score_rows_backward(cpu_context& on, size_t rows, size_t labels, size_t width, T const* hidden, T const* weight,
                                            T const* dscores, T* dhidden, T* dweight);
}  // namespace weft::kernels
#include <weft/kernels/cpu/score.hpp>
