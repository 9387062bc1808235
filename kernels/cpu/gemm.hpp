// gemm.hpp (cpu)
#pragma once
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/gemm.hpp>

namespace weft::kernels {
namespace detail {
template <class T> void gemm(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t ai, size_t ap, T const* b, size_t bp, size_t bj, T* c, size_t ldc,
                             bool accumulate) {
  parallel_for(on, n, 16, [=](size_t begin, size_t end) {
    for (size_t i = 0; i < m; ++i)
      for (size_t j = begin; j < end; ++j) {
        T sum = accumulate ? c[i * ldc + j] : T(0);
        for (size_t p = 0; p < k; ++p) sum = fma(a[i * ai + p * ap], b[p * bp + j * bj], sum);
        c[i * ldc + j] = sum;
      }
  });
}
}  // namespace detail
template <class T> void gemm_nt(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm(on, m, n, k, a, lda, 1, b, 1, ldb, c, ldc, accumulate);
}
template <class T> void gemm_nn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm(on, m, n, k, a, lda, 1, b, ldb, 1, c, ldc, accumulate);
}
template <class T> void gemm_tn(cpu_context& on, size_t m, size_t n, size_t k, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  detail::gemm(on, m, n, k, a, 1, lda, b, ldb, 1, c, ldc, accumulate);
}
}  // namespace weft::kernels
