// gemm.cuh — matrix products through cuBLASLt whose rows have the same bits for every number of rows.
//
// bf16 operands, f32 accumulation, outputs bf16 or f32 (accumulate: f32). Row-major, as in gemm.hpp. For gemm_nt and gemm_nn the number of
// rows m is padded to gemm_rows(m): a must be readable and c writable up to there, and what c holds beyond m afterwards means nothing. A
// plan is the fastest algorithm that, at exactly this padded m, equals a plain loop of m16n8k16 tensor-core products over k on every row;
// up to 16 rows have a kernel of their own (few_rows.cuh).
// Plans are searched once (gemm_plans::prepare, or the first call outside a capture) and kept in a file for this card, driver and library.
#pragma once
#include <weft/kernels/cuda/few_rows.cuh>
#include <weft/kernels/cuda/gemm_plans.cuh>

namespace weft::kernels {
namespace detail {
inline void gemm(cuda_context& on, gemm_shape const& s, bf16 const* a, size_t lda, bf16 const* b, size_t ldb, void* c, size_t ldc) {
  if (!s.m || !s.n) return;
  if (!on.gemms) throw std::runtime_error("gemm: the context has no gemm_plans");
  on.gemms->run(on.stream, s, a, lda, b, ldb, c, ldc);
}
template <class C> inline constexpr bool is_f32 = sizeof(C) == sizeof(f32);
}  // namespace detail

template <class C> void gemm_nt(cuda_context& on, size_t m, size_t n, size_t k, bf16 const* a /*[m, k]*/, size_t lda,
                                bf16 const* b /*[n, k]*/, size_t ldb, C* c /*[m, n]*/, size_t ldc, bool accumulate) {
  if constexpr (!detail::is_f32<C>)
    if (m && m <= cuda::few_rows && !accumulate && gemm_few_rows(on, plain_rows{a, lda}, m, n, k, b, ldb, c, ldc)) return;
  detail::gemm(on, {gemm_form::nt, detail::is_f32<C>, accumulate, gemm_rows(m), n, k}, a, lda, b, ldb, c, ldc);
}
template <class C> void gemm_nn(cuda_context& on, size_t m, size_t n, size_t k, bf16 const* a /*[m, k]*/, size_t lda,
                                bf16 const* b /*[k, n]*/, size_t ldb, C* c /*[m, n]*/, size_t ldc, bool accumulate) {
  detail::gemm(on, {gemm_form::nn, detail::is_f32<C>, accumulate, gemm_rows(m), n, k}, a, lda, b, ldb, c, ldc);
}
// the gradient of a weight: m and n are the weight's, nothing is padded
template <class C> void gemm_tn(cuda_context& on, size_t m, size_t n, size_t k, bf16 const* a /*[k, m]*/, size_t lda,
                                bf16 const* b /*[k, n]*/, size_t ldb, C* c /*[m, n]*/, size_t ldc, bool accumulate) {
  detail::gemm(on, {gemm_form::tn, detail::is_f32<C>, accumulate, m, n, k}, a, lda, b, ldb, c, ldc);
}
}  // namespace weft::kernels
