// Kernels of a GPU: shape, microseconds, achieved TB/s or TFLOP/s, share of the floor (4.3 TB/s, 790 TFLOP/s). For matrix products also the
// time of the fastest algorithm that cuBLASLt offers without the condition of equal rows.
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Iinclude bench/cuda_kernels.cu -lcublasLt
#include <weft/kernels/cuda/adamw.cuh>
#include <weft/kernels/cuda/embedding.cuh>
#include <weft/kernels/cuda/head.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/kernels/cuda/rope.cuh>
#include <weft/kernels/cuda/sampling.cuh>
#include <weft/kernels/cuda/swiglu.cuh>

#include <algorithm>

#include "../tests/cuda/device.cuh"

namespace {
using namespace test;
using weft::bf16;
using weft::i32;
constexpr double bandwidth = 4.3e12, rate = 790e12;

template <class X> X* room(size_t n) {
  X* p = nullptr;
  check(cudaMalloc(&p, n * sizeof(X)), "malloc");
  return p;
}
bf16* noise(size_t n, float scale = 1) {
  bf16* const p = room<bf16>(n);
  kernels::detail::random_matrix<<<2048, 256>>>(1, n, n, 1, 1, static_cast<weft::u32>(n), p);
  std::vector<bf16> x = random_bf16(std::min<size_t>(n, 1 << 20), scale);  // normal, repeated
  for (size_t i = 0; i < n; i += x.size())
    check(cudaMemcpy(p + i, x.data(), std::min(x.size(), n - i) * 2, cudaMemcpyHostToDevice), "upload");
  return p;
}
template <class F> double seconds(cudaStream_t stream, F const& f) {  // median of 15 single calls, caches flushed before each
  static void* const flush = room<char>(size_t{128} << 20);
  cudaEvent_t a{}, b{};
  cudaEventCreate(&a), cudaEventCreate(&b);
  float ms[15];
  f();
  for (int i = 0; i < 15; ++i) {
    cudaMemsetAsync(flush, i, size_t{128} << 20, stream);
    cudaEventRecord(a, stream);
    f();
    cudaEventRecord(b, stream);
    check(cudaEventSynchronize(b), "time");
    cudaEventElapsedTime(&ms[i], a, b);
  }
  std::sort(ms, ms + 15);
  cudaEventDestroy(a), cudaEventDestroy(b);
  return ms[7] * 1e-3;
}
void line(char const* name, double s, double bytes, double operations) {
  double const floor = std::max(bytes / bandwidth, operations / rate);
  if (operations / rate > bytes / bandwidth)
    std::printf("%-58s %9.1f us %7.0f TFLOP/s %5.0f %%\n", name, s * 1e6, operations / s * 1e-12, 100 * floor / s);
  else std::printf("%-58s %9.1f us %7.2f TB/s    %5.0f %%\n", name, s * 1e6, bytes / s * 1e-12, 100 * floor / s);
  std::fflush(stdout);
}
struct plain_loss {
  float const* weight;
  __device__ kernels::token_gradient<float> operator()(size_t row, float, float entropy) const { return {weight[row], 0.001f * entropy}; }
};

void rows(kernels::cuda_context& on, size_t tokens, size_t hidden, size_t inner, size_t heads) {
  char name[96];
  bf16 *const x = noise(tokens * inner), *const y = noise(tokens * inner), *const z = noise(tokens * inner), *const w = noise(inner),
              *const u = noise(tokens * inner), *const v = noise(tokens * inner);
  float *const inverse = room<float>(tokens * heads), *const dw = room<float>(inner), *const table = room<float>(4096 * 128);
  cudaMemset(dw, 0, inner * 4), cudaMemset(table, 0, 4096 * 128 * 4);
  array<i32> positions(random_ids(tokens, 4096));
  double const n = double(tokens) * double(hidden), m = double(tokens) * double(inner), h = double(tokens) * double(heads) * 128;
  std::snprintf(name, sizeof name, "rmsnorm %zu x %zu", tokens, hidden);
  line(name, seconds(on.stream, [&] { kernels::rmsnorm(on, tokens, hidden, x, w, 1e-6f, y, inverse); }), 4 * n, 0);
  std::snprintf(name, sizeof name, "add_rmsnorm %zu x %zu", tokens, hidden);
  line(name, seconds(on.stream, [&] { kernels::add_rmsnorm(on, tokens, hidden, x, z, w, 1e-6f, y, inverse); }), 8 * n, 0);
  std::snprintf(name, sizeof name, "rmsnorm_backward %zu x %zu", tokens, hidden);
  line(name, seconds(on.stream, [&] { kernels::rmsnorm_backward(on, tokens, hidden, x, w, inverse, z, y, dw); }), 8 * n, 0);
  std::snprintf(name, sizeof name, "rmsnorm of heads %zu x 128", tokens * heads);
  line(name, seconds(on.stream, [&] { kernels::rmsnorm(on, tokens * heads, 128, x, w, 1e-6f, y, inverse); }), 4 * h, 0);
  std::snprintf(name, sizeof name, "rmsnorm_backward of heads %zu x 128", tokens * heads);
  line(name, seconds(on.stream, [&] { kernels::rmsnorm_backward(on, tokens * heads, 128, x, w, inverse, z, y, dw); }), 8 * h, 0);
  std::snprintf(name, sizeof name, "rope %zu x %zu x 128", tokens, heads);
  line(name, seconds(on.stream, [&] { kernels::rope(on, tokens, heads, 128, positions.data, table, x); }), 4 * h, 0);
  std::snprintf(name, sizeof name, "swiglu %zu x %zu", tokens, inner);
  line(name, seconds(on.stream, [&] { kernels::swiglu(on, tokens * inner, x, y, z); }), 6 * m, 0);
  std::snprintf(name, sizeof name, "swiglu_backward %zu x %zu", tokens, inner);
  line(name, seconds(on.stream, [&] { kernels::swiglu_backward(on, tokens * inner, x, y, z, u, v); }), 10 * m, 0);
  size_t const vocab = 128256;
  float* const dtable = room<float>(vocab * hidden);
  cudaMemset(dtable, 0, vocab * hidden * 4);
  array<i32> ids(random_ids(tokens, static_cast<i32>(vocab)));
  std::snprintf(name, sizeof name, "embed_backward %zu x %zu", tokens, hidden);
  line(name, seconds(on.stream, [&] { kernels::embed_backward(on, tokens, hidden, ids.data, z, dtable); }), 10 * n, 0);
  cudaFree(x), cudaFree(y), cudaFree(z), cudaFree(u), cudaFree(v), cudaFree(w), cudaFree(dtable), cudaFree(inverse);
}
void products(kernels::gemm_plans& plans, size_t n, size_t k) {
  size_t const counts[] = {16, 64, 128, 256, 2048, 8192};
  char name[96];
  auto const one = [&](kernels::gemm_shape const& s) {
    auto const& p = plans.prepare(s);
    std::snprintf(name, sizeof name, "gemm %s%s, exact costs %.2fx", kernels::gemm_plans::text(s).c_str(), p.equal ? "" : " NOT EQUAL",
                  p.milliseconds / p.best_milliseconds);
    line(name, p.milliseconds * 1e-3,
         2.0 * double(s.n * s.k + s.m * s.k) + (s.f32_out ? 4.0 : 2.0) * (s.accumulate ? 2 : 1) * double(s.m * s.n),
         2.0 * double(s.m) * double(s.n) * double(s.k));
  };
  for (size_t i = 0; i < 6; ++i) one({kernels::gemm_form::nt, false, false, counts[i], n, k});
  one({kernels::gemm_form::nn, false, false, 8192, k, n});
  one({kernels::gemm_form::tn, true, true, n, k, 8192});
}
void head(kernels::cuda_context& on, size_t width, size_t vocab) {
  char name[96];
  size_t const chunk = 2048;
  bf16 *const hidden = noise(chunk * width), *const weight = noise(vocab * width, 0.05f), *const dhidden = noise(chunk * width);
  bf16* const logits = noise(chunk * vocab, 3);
  float* const dweight = room<float>(vocab * width);
  cudaMemset(dweight, 0, vocab * width * 4);
  array<i32> targets(random_ids(chunk, static_cast<i32>(vocab)));
  array<float> it(std::vector<float>(chunk, 1.0f)), weights(random_f32(chunk)), log_prob(chunk), entropy(chunk);
  double const n = double(chunk) * double(vocab), product = 2 * n * double(width);
  std::snprintf(name, sizeof name, "softmax_rows %zu x %zu", chunk, vocab);
  line(name,
       seconds(on.stream, [&] { kernels::softmax_rows(on, chunk, vocab, logits, targets.data, it.data, log_prob.data, entropy.data); }),
       2 * n, 0);
  plain_loss const loss{weights.data};
  std::snprintf(name, sizeof name, "loss and gradient of logits %zu x %zu", chunk, vocab);
  line(name,
       seconds(on.stream,
               [&] { kernels::detail::head_chunk(on, 0, chunk, vocab, logits, targets.data, it.data, loss, log_prob.data, entropy.data); }),
       4 * n, 0);
  std::snprintf(name, sizeof name, "head_log_probs %zu x %zu x %zu", chunk, width, vocab);
  line(name,
       seconds(on.stream,
               [&] {
                 kernels::head_log_probs(on, chunk, width, vocab, hidden, weight, targets.data, it.data, chunk, logits, log_prob.data,
                                         entropy.data);
               }),
       0, product);
  std::snprintf(name, sizeof name, "head_loss %zu x %zu x %zu", chunk, width, vocab);
  line(name,
       seconds(on.stream,
               [&] {
                 kernels::head_loss(on, chunk, width, vocab, hidden, weight, targets.data, it.data, chunk, logits, loss, log_prob.data,
                                    entropy.data, dhidden, dweight);
               }),
       0, 3 * product);
  cudaFree(logits);
  bf16* const drawn_from = noise(128 * vocab, 3);
  for (int kind = 0; kind < 4; ++kind)
    for (size_t b = 1; b <= 128; b *= 128) {
      kernels::sampling s;
      if (kind == 1) s.top_k = 50;
      if (kind == 2) s.top_p = 0.9f;
      if (kind == 3) s.top_k = 50, s.top_p = 0.9f, s.min_p = 0.02f;
      array<kernels::sampling> how(std::vector<kernels::sampling>(b, s));
      array<kernels::draw_counter> counters(std::vector<kernels::draw_counter>(b, {1, 2, 3}));
      array<kernels::drawn<float>> out(b);
      char const* const kinds[] = {"", " top_k", " top_p", " top_k top_p min_p"};
      std::snprintf(name, sizeof name, "sample_rows %zu x %zu%s", b, vocab, kinds[kind]);
      line(name,
           seconds(on.stream,
                   [&] {
                     kernels::sample_rows(on, b, vocab, drawn_from, how.data, static_cast<kernels::token_rules*>(nullptr), 1, counters.data,
                                          out.data);
                   }),
           2.0 * double(b * vocab), 0);
    }
  cudaFree(drawn_from), cudaFree(hidden), cudaFree(weight), cudaFree(dhidden), cudaFree(dweight);
}
void optimizer(kernels::cuda_context& on, size_t n, kernels::moment_format format, bool mastered) {
  char name[96];
  char const* const names[] = {"f32", "bf16", "8-bit"};
  size_t const bytes = kernels::moment_layout_of(format, n).end;
  float *const master = room<float>(n), *const g = room<float>(n);
  bf16* const w = room<bf16>(n);
  char* const moments = room<char>(bytes);
  kernels::fill(on, n, 0.5f, master), kernels::fill(on, n, 0.01f, g), cudaMemset(moments, 0, bytes);
  array<float> lr(std::vector<float>{1e-6f}), norm(1);
  array<i32> counted(std::vector<i32>{1}), steps(std::vector<i32>{0});
  kernels::adamw_options o;
  o.moments = format;
  std::snprintf(name, sizeof name, "adamw %zu with norm, %s moments%s", n, names[int(format)], mastered ? ", f32 master" : "");
  line(name,
       seconds(on.stream,
               [&] {
                 kernels::clipped_adamw(on, n, o, g, counted.data, lr.data, w, mastered ? master : nullptr, moments, steps.data, norm.data);
               }),
       double(n) * (mastered ? 4 + 4 + 8 + 2 : 4 + 4 + 4) + 2.0 * double(bytes), 0);
  cudaFree(master), cudaFree(g), cudaFree(w), cudaFree(moments);
}
}  // namespace

int main() {
  machine gpu(size_t{256} << 20);
  kernels::gemm_plans plans("", true);
  gpu.on.gemms = &plans;
  char *const from = room<char>(size_t{4} << 30), *const to = room<char>(size_t{4} << 30);
  line("copy 4 GiB", seconds(gpu.on.stream, [&] { cudaMemcpyAsync(to, from, size_t{4} << 30, cudaMemcpyDeviceToDevice, gpu.on.stream); }),
       2.0 * double(size_t{4} << 30), 0);
  cudaFree(from), cudaFree(to);
  rows(gpu.on, 8192, 1024, 3072, 16);
  rows(gpu.on, 8192, 4096, 14336, 32);
  rows(gpu.on, 128, 1024, 3072, 16);
  products(plans, 4096, 1024), products(plans, 1024, 2048), products(plans, 6144, 1024), products(plans, 1024, 3072);
  products(plans, 6144, 4096), products(plans, 4096, 4096), products(plans, 28672, 4096), products(plans, 4096, 14336);
  products(plans, 151936, 1024), products(plans, 128256, 4096);
  head(gpu.on, 1024, 151936);
  head(gpu.on, 4096, 128256);
  using kernels::moment_format;
  for (auto format : {moment_format::f32, moment_format::bf16, moment_format::f8})
    for (bool mastered : {true, false}) optimizer(gpu.on, 596'049'920, format, mastered);
  return 0;
}
