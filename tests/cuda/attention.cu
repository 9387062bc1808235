#include "attention_device.hpp"

#include <cstdio>
#include <weft/kernels/cuda/paged.cuh>

namespace device {
namespace {
__device__ unsigned char scratch_memory[256];
kernels::cuda_context context(cudaStream_t stream) {
  kernels::cuda_context on{stream};
  kernels::check(cudaGetSymbolAddress(&on.scratch, scratch_memory), "scratch");
  on.scratch_bytes = sizeof scratch_memory;
  return on;
}
}  // namespace
void attention(cudaStream_t stream, shape const& s, bf16 const* q, bf16 const* k, bf16 const* v, bf16* out, f32* lse) {
  kernels::cuda_context on = context(stream);
  kernels::attention(on, s.sequences, s.cu_seqlens, s.heads, s.kv_heads, s.head_dim, s.scale, q, k, v, out, lse);
}
void attention_backward(cudaStream_t stream, shape const& s, bf16 const* q, bf16 const* k, bf16 const* v, bf16 const* out, f32 const* lse,
                        bf16 const* dout, bf16* dq, bf16* dk, bf16* dv) {
  kernels::cuda_context on = context(stream);
  kernels::attention_backward(on, s.sequences, s.cu_seqlens, s.heads, s.kv_heads, s.head_dim, s.scale, q, k, v, out, lse, dout, dq, dk, dv);
}
template <class Kv> void paged_write(cudaStream_t stream, kernels::paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                     i32 const* sequence, i32 const* position, bf16 const* k, bf16 const* v) {
  kernels::cuda_context on = context(stream);
  kernels::paged_write(on, pool, layer, rows, sequence, position, k, v);
}
template <class Kv> void attention_paged(cudaStream_t stream, kernels::paged_pool<Kv> const& pool, size_t layer, size_t rows,
                                         i32 const* sequence, i32 const* position, size_t heads, f32 scale, bf16 const* q, bf16* out,
                                         i32 const* members, i32 const* shared) {
  kernels::cuda_context on = context(stream);
  kernels::attention_paged(on, pool, layer, rows, sequence, position, heads, scale, q, out, kernels::page_groups{members, shared});
}
template void paged_write(cudaStream_t, kernels::paged_pool<bf16> const&, size_t, size_t, i32 const*, i32 const*, bf16 const*, bf16 const*);
template void paged_write(cudaStream_t, kernels::paged_pool<f8e4m3> const&, size_t, size_t, i32 const*, i32 const*, bf16 const*,
                          bf16 const*);
template void attention_paged(cudaStream_t, kernels::paged_pool<bf16> const&, size_t, size_t, i32 const*, i32 const*, size_t, f32,
                              bf16 const*, bf16*, i32 const*, i32 const*);
template void attention_paged(cudaStream_t, kernels::paged_pool<f8e4m3> const&, size_t, size_t, i32 const*, i32 const*, size_t, f32,
                              bf16 const*, bf16*, i32 const*, i32 const*);
}  // namespace device

#define DOCTEST_CONFIG_IMPLEMENT
#include "attention_checks.hpp"

namespace {
int passed = 0, failed = 0;
struct counter : doctest::IReporter {  // the closing line of tests/cuda/run.sh
  explicit counter(doctest::ContextOptions const&) {}
  void test_run_end(doctest::TestRunStats const& s) override {
    passed = s.numAsserts - s.numAssertsFailed, failed = s.numAssertsFailed + static_cast<int>(s.numTestCasesFailed);
  }
  void report_query(doctest::QueryData const&) override {}
  void test_run_start() override {}
  void test_case_start(doctest::TestCaseData const&) override {}
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override {}
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const&) override {}
  void log_message(doctest::MessageData const&) override {}
  void test_case_skipped(doctest::TestCaseData const&) override {}
};
}  // namespace
REGISTER_LISTENER("counter", 0, counter);

int main(int count, char** words) {
  doctest::Context tests(count, words);
  tests.run();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
