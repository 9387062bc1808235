// gemm.hpp — matrix products that round alike for every shape. Row-major; ld* is the distance of rows, in elements.
//
// The contract: c[i][j] is one accumulator that starts at c[i][j] (accumulate) or 0 and takes a fused multiply-add for k = 0, 1, ... in
// this order. Its bits depend on the row of a, the column of b and k alone: not on m, n, the place of the row, threads or blocking.
// Outputs may not alias inputs. k = 0 is allowed: c is kept or zeroed.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {
template <class T> void gemm_nt(cpu_context& on, size_t m, size_t n, size_t k, T const* a /*[m, k]*/, size_t lda, T const* b /*[n, k]*/,
                                size_t ldb, T* c /*[m, n]*/, size_t ldc, bool accumulate);  // a b^T: a linear layer forward
template <class T> void gemm_nn(cpu_context& on, size_t m, size_t n, size_t k, T const* a /*[m, k]*/, size_t lda, T const* b /*[k, n]*/,
                                size_t ldb, T* c /*[m, n]*/, size_t ldc, bool accumulate);  // a b: gradient of the input
template <class T> void gemm_tn(cpu_context& on, size_t m, size_t n, size_t k, T const* a /*[k, m]*/, size_t lda, T const* b /*[k, n]*/,
                                size_t ldb, T* c /*[m, n]*/, size_t ldc, bool accumulate);  // a^T b: gradient of the weight
}  // namespace weft::kernels
#include <weft/kernels/cpu/gemm.hpp>
