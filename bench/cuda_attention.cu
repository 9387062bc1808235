// cuda_attention.cu — time of the attention kernels on a GPU: medians of CUDA events over random data, as TFLOP/s or TB/s and as a share of
// the floors (causal forward 521, backward 400 TFLOP/s; decode 4.3 TB/s). Causal: half the products of a square count.
#include <algorithm>
#include <cstdio>
#include <weft/kernels/cuda/paged.cuh>

namespace {
using namespace weft;
using namespace weft::kernels;

__global__ void random_values(bf16* x, size_t n, u32 seed) {  // uniform in (-1.7, 1.7): variance 1
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    u32 h = (static_cast<u32>(i) + seed) * 2654435761u;
    h = (h ^ h >> 15) * 2246822519u, h = (h ^ h >> 13) * 3266489917u, h ^= h >> 16;
    x[i] = to_bf16((static_cast<float>(h >> 8) * 0x1p-23f - 1) * 1.7320508f);
  }
}
template <class T> T* memory(size_t n) {
  T* p = nullptr;
  check(cudaMalloc(&p, n * sizeof(T)), "memory");
  return p;
}
bf16* values(size_t n, u32 seed) {
  bf16* p = memory<bf16>(n);
  random_values<<<1024, 256>>>(p, n, seed);
  return p;
}
i32* integers(size_t n, i32 (*f)(size_t, size_t), size_t x) {
  i32* const host = static_cast<i32*>(std::malloc(n * sizeof(i32)));
  for (size_t i = 0; i < n; ++i) host[i] = f(i, x);
  i32* const p = memory<i32>(n);
  check(cudaMemcpy(p, host, n * sizeof(i32), cudaMemcpyHostToDevice), "copy");
  std::free(host);
  return p;
}
template <class F> double milliseconds(F const& f) {  // median of 15
  float times[15];
  cudaEvent_t a, b;
  check(cudaEventCreate(&a), "event"), check(cudaEventCreate(&b), "event");
  for (int i = -3; i < 15; ++i) {
    check(cudaEventRecord(a), "event");
    f();
    check(cudaEventRecord(b), "event");
    check(cudaEventSynchronize(b), "run");
    if (i >= 0) check(cudaEventElapsedTime(&times[i], a, b), "time");
  }
  std::sort(times, times + 15);
  return double(times[7]);
}

cuda_context with_scratch() {
  static void* const scratch = memory<char>(256);
  cuda_context on;
  on.scratch = scratch, on.scratch_bytes = 256;
  return on;
}

void training(size_t sequences, size_t length, size_t heads, size_t kv_heads, size_t head_dim) {
  cuda_context on = with_scratch();
  size_t const tokens = sequences * length, n = tokens * heads * head_dim, m = tokens * kv_heads * head_dim;
  bf16 *q = values(n, 1), *k = values(m, 2), *v = values(m, 3), *d = values(n, 4), *out = memory<bf16>(n), *dq = memory<bf16>(n),
       *dk = memory<bf16>(m), *dv = memory<bf16>(m);
  f32 *lse = memory<f32>(tokens * heads), scale = 1 / std::sqrt(float(head_dim));
  i32* cu = integers(
      sequences + 1, [](size_t i, size_t x) { return static_cast<i32>(i * x); }, length);
  double const forward = milliseconds([&] { attention(on, sequences, cu, heads, kv_heads, head_dim, scale, q, k, v, out, lse); });
  double const backward =
      milliseconds([&] { attention_backward(on, sequences, cu, heads, kv_heads, head_dim, scale, q, k, v, out, lse, d, dq, dk, dv); });
  double const flop = 2.0 * double(sequences) * double(length) * double(length) * double(heads) * double(head_dim);
  std::printf("training %2zu x %5zu, %zu/%zu heads of %3zu: forward %7.3f ms %4.0f TFLOP/s (%3.0f %%)   backward %7.3f ms %4.0f TFLOP/s "
              "(%3.0f %%)\n",
              sequences, length, heads, kv_heads, head_dim, forward, flop / forward * 1e-9, flop / forward * 1e-7 / 521, backward,
              2.5 * flop / backward * 1e-9, 2.5 * flop / backward * 1e-7 / 400);
  for (void* p : {(void*)q, (void*)k, (void*)v, (void*)d, (void*)out, (void*)dq, (void*)dk, (void*)dv, (void*)lse, (void*)cu}) cudaFree(p);
}
template <class Kv> void decode(char const* name, size_t batch, size_t context, size_t heads, size_t kv_heads, size_t head_dim) {
  cuda_context on = with_scratch();
  size_t const width = (context + page_tokens - 1) / page_tokens, count = batch * width;
  size_t const page = page_elements<Kv>(1, kv_heads, head_dim), bytes = count * page * sizeof(Kv);
  size_t const layers =
      std::max<size_t>(1, std::min<size_t>(32, (size_t{4} << 30) / bytes));  // so that L2 holds nothing of a layer's last visit
  paged_pool<Kv> pool{memory<Kv>(count * page * layers),
                      layers,
                      kv_heads,
                      head_dim,
                      integers(
                          count, [](size_t i, size_t n) { return static_cast<i32>(i * 7919 % n); }, count % 7919 ? count : count + 1),
                      width};
  i32 *sequence = integers(
          batch, [](size_t i, size_t) { return static_cast<i32>(i); }, 0),
      *position = integers(
          batch, [](size_t, size_t x) { return static_cast<i32>(x - 1); }, context);
  bf16 *q = values(batch * heads * head_dim, 1), *out = memory<bf16>(batch * heads * head_dim);
  size_t const rows = batch * context;
  i32 *each = integers(
          rows, [](size_t i, size_t n) { return static_cast<i32>(i / n); }, context),
      *at = integers(
          rows, [](size_t i, size_t n) { return static_cast<i32>(i % n); }, context);
  bf16* x = values(rows * kv_heads * head_dim, 5);
  for (size_t l = 0; l < layers; ++l) paged_write(on, pool, l, rows, each, at, x, x);
  double const time = milliseconds([&] {
                        for (size_t l = 0; l < layers; ++l)
                          attention_paged(on, pool, l, batch, sequence, position, heads, 1 / std::sqrt(float(head_dim)), q, out);
                      }) /
                      double(layers);
  double const read = double(batch) * double(context) * double(kv_heads) * 2 * double(page_row_elements<Kv>(head_dim)) * sizeof(Kv);
  std::printf("decode %s batch %3zu, context %5zu, %zu/%zu heads of %3zu: %7.1f us %5.2f TB/s (%3.0f %%)\n", name, batch, context, heads,
              kv_heads, head_dim, time * 1e3, read / time * 1e-9, read / time * 1e-7 / 4.3);
  for (void* p :
       {(void*)pool.data, (void*)pool.table, (void*)sequence, (void*)position, (void*)q, (void*)out, (void*)each, (void*)at, (void*)x})
    cudaFree(p);
}
}  // namespace

int main(int count, char**) {
  training(8, 2048, 32, 8, 128);
  training(2, 8192, 32, 8, 128);
  training(8, 2048, 16, 8, 128);
  training(8, 2048, 32, 8, 64);
  training(32, 512, 32, 8, 128);
  if (count > 1) return 0;  // any argument: training alone
  for (size_t batch : {1, 16, 32, 128})
    for (size_t context : {512, 2048, 8192}) {
      decode<bf16>("bf16", batch, context, 32, 8, 128);
      decode<f8e4m3>("fp8 ", batch, context, 32, 8, 128);
    }
  decode<bf16>("bf16", 128, 2048, 16, 8, 128);
  decode<f8e4m3>("fp8 ", 128, 2048, 16, 8, 128);
}
