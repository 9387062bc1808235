// device.cuh — for tests of kernels: arrays on the device, and a call made eagerly and as a captured graph, each on poisoned outputs.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>
#include <weft/kernels/cuda/context.cuh>

namespace test {
using namespace weft;
using kernels::check;

inline int passed = 0, failed = 0;
inline void expect(bool good, std::string const& what) {
  good ? ++passed : ++failed;
  if (!good) std::printf("FAILED: %s\n", what.c_str());
}

inline float wide(bf16 x) {
  u32 const bits = u32{x.bits} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline bf16 narrow(float f) {
  u32 bits;
  std::memcpy(&bits, &f, 4);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
inline float wide(float x) { return x; }
template <class X> std::vector<float> wide(std::vector<X> const& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = wide(x[i]);
  return y;
}

inline std::mt19937_64 random_engine{1};
inline std::vector<bf16> random_bf16(size_t n, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<bf16> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = narrow(normal(random_engine));
  return x;
}
inline std::vector<float> random_f32(size_t n, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = normal(random_engine);
  return x;
}
inline std::vector<i32> random_ids(size_t n, i32 below) {
  std::vector<i32> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<i32>(random_engine() % static_cast<u64>(below));
  return x;
}

struct any_array {
  virtual void reset() = 0;
  virtual std::vector<unsigned char> bytes() const = 0;
  virtual ~any_array() = default;
};
// [n] on the device. Begins as given, or as bytes 0xff: NaN in every float format.
template <class X> struct array : any_array {
  std::vector<X> start;
  X* data = nullptr;
  explicit array(std::vector<X> x) : start(std::move(x)) {
    check(cudaMalloc(&data, start.size() * sizeof(X) + 16), "malloc");
    reset();
  }
  explicit array(size_t n) : array(poison(n)) {}
  array(array const&) = delete;
  ~array() override { cudaFree(data); }
  static std::vector<X> poison(size_t n) {
    std::vector<X> x(n);
    if (n) std::memset(static_cast<void*>(x.data()), 0xff, n * sizeof(X));
    return x;
  }
  void reset() override { check(cudaMemcpy(data, start.data(), start.size() * sizeof(X), cudaMemcpyHostToDevice), "upload"); }
  std::vector<X> get() const {
    std::vector<X> x(start.size());
    check(cudaMemcpy(x.data(), data, x.size() * sizeof(X), cudaMemcpyDeviceToHost), "download");
    return x;
  }
  std::vector<unsigned char> bytes() const override {
    std::vector<unsigned char> x(start.size() * sizeof(X));
    check(cudaMemcpy(x.data(), data, x.size(), cudaMemcpyDeviceToHost), "download");
    return x;
  }
};

// Runs f eagerly, then captured and replayed; outputs begin anew each time and must end with the same bits.
template <class F> void both(kernels::cuda_context& on, std::string const& what, std::vector<any_array*> outputs, F const& f) {
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->reset();
  f();
  check(cudaStreamSynchronize(on.stream), what.c_str());
  std::vector<std::vector<unsigned char>> eager;
  for (size_t i = 0; i < outputs.size(); ++i) eager.push_back(outputs[i]->bytes()), outputs[i]->reset();
  cudaGraph_t graph{};
  cudaGraphExec_t ready{};
  check(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal), "capture");
  f();
  check(cudaStreamEndCapture(on.stream, &graph), "capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
  check(cudaGraphLaunch(ready, on.stream), "launch");
  check(cudaStreamSynchronize(on.stream), what.c_str());
  bool equal = true;
  for (size_t i = 0; i < outputs.size(); ++i) equal = equal && outputs[i]->bytes() == eager[i];
  expect(equal, what + ": eager and captured differ");
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

// max |difference| <= tolerance max |reference|
template <class X, class Y> void near(std::vector<X> const& got, std::vector<Y> const& want, double tolerance, std::string const& what) {
  double most = 0, size = 0;
  bool good = got.size() >= want.size();
  for (size_t i = 0; good && i < want.size(); ++i) {
    double const d = std::fabs(double(wide(got[i])) - double(wide(want[i])));
    good = d == d;
    if (d > most) most = d;
    if (std::fabs(double(wide(want[i]))) > size) size = std::fabs(double(wide(want[i])));
  }
  char text[128];
  std::snprintf(text, sizeof text, ": relative %.3g, allowed %.3g%s", most / (size + 1e-30), tolerance, good ? "" : ", not finite");
  expect(good && most <= tolerance * size, what + text);
}
template <class X> bool same(X const* a, X const* b, size_t n) { return std::memcmp(a, b, n * sizeof(X)) == 0; }

struct machine {
  kernels::cuda_context on;
  explicit machine(size_t scratch = size_t{64} << 20) {
    check(cudaStreamCreate(&on.stream), "stream");  // waits for uploads
    check(cudaMalloc(&on.scratch, scratch), "scratch");
    on.scratch_bytes = scratch;
  }
};
inline int report() {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
}  // namespace test
