// attention_checks.hpp — attention kernels on a GPU against the CPU's in double, and against each other bit for bit.
#pragma once
#include "attention_device.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <weft/kernels/attention.hpp>

#include "../kernels/help.hpp"

using namespace weft;

namespace {
void check(cudaError_t e) { REQUIRE_MESSAGE(e == cudaSuccess, cudaGetErrorString(e)); }

// Numbers on the device, poisoned at first, with a margin behind them that must stay as it is.
template <class T> class buffer {
  static constexpr size_t margin = 256;
  T* data_ = nullptr;
  size_t size_;

 public:
  explicit buffer(size_t n) : size_(n) {
    check(cudaMalloc(&data_, bytes()));
    poison();
  }
  explicit buffer(std::vector<T> const& x) : buffer(x.size()) {
    check(cudaMemcpy(data_, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  buffer(buffer const&) = delete;
  ~buffer() { cudaFree(data_); }
  size_t bytes() const { return size_ * sizeof(T) + margin; }
  void poison() { check(cudaMemset(data_, 0xff, bytes())); }
  T* get() const { return data_; }
  std::vector<T> read() const {
    check(cudaDeviceSynchronize());
    std::vector<T> x(size_);
    std::vector<unsigned char> behind(margin);
    check(cudaMemcpy(x.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(behind.data(), data_ + size_, margin, cudaMemcpyDeviceToHost));
    CHECK(std::all_of(behind.begin(), behind.end(), [](unsigned char b) { return b == 0xff; }));
    return x;
  }
};

std::vector<bf16> narrow(std::vector<float> const& x) {
  std::vector<bf16> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    u32 bits;
    std::memcpy(&bits, &x[i], 4);
    y[i].bits = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  return y;
}
template <class T> std::vector<T> widen(std::vector<bf16> const& x) {
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    u32 const bits = static_cast<u32>(x[i].bits) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    y[i] = static_cast<T>(f);
  }
  return y;
}
std::vector<bf16> values(size_t n, u64 seed, double size = 1) { return narrow(help::values<float>(n, seed, size)); }

struct problem {
  std::vector<i32> lengths;
  size_t heads, kv_heads, head_dim;
  std::vector<i32> cu_seqlens() const {
    std::vector<i32> cu{0};
    for (i32 n : lengths) cu.push_back(cu.back() + n);
    return cu;
  }
  size_t tokens() const { return static_cast<size_t>(cu_seqlens().back()); }
  float scale() const { return static_cast<float>(1 / std::sqrt(double(head_dim))); }
};
problem const problems[] = {{{1}, 1, 1, 64},
                            {{63}, 2, 2, 128},
                            {{64}, 4, 1, 128},
                            {{65}, 8, 1, 64},
                            {{200}, 4, 4, 128},
                            {{1, 63, 64, 65, 200, 300}, 8, 2, 128},
                            {{257, 129, 1, 513}, 4, 2, 64},
                            {{100, 60}, 3, 1, 80},
                            {{130, 7}, 2, 1, 8},
                            {{700}, 32, 1, 128}};

// A problem on the device and its results.
struct run {
  problem p;
  std::vector<i32> cu;
  std::vector<bf16> q, k, v, dout;
  buffer<i32> dcu;
  buffer<bf16> dq_, dk_, dv_, d_, out, gq, gk, gv;
  buffer<f32> lse;
  run(problem const& x, u64 seed)
      : p(x)
      , cu(x.cu_seqlens())
      , q(values(x.tokens() * x.heads * x.head_dim, seed, 2))
      , k(values(x.tokens() * x.kv_heads * x.head_dim, seed + 1, 2))
      , v(values(k.size(), seed + 2))
      , dout(values(q.size(), seed + 3))
      , dcu(cu)
      , dq_(q)
      , dk_(k)
      , dv_(v)
      , d_(dout)
      , out(q.size())
      , gq(q.size())
      , gk(k.size())
      , gv(k.size())
      , lse(x.tokens() * x.heads) {}
  device::shape shape() const { return {p.lengths.size(), p.heads, p.kv_heads, p.head_dim, dcu.get(), p.scale()}; }
  void forward(cudaStream_t s) { device::attention(s, shape(), dq_.get(), dk_.get(), dv_.get(), out.get(), lse.get()); }
  void backward(cudaStream_t s) {
    device::attention_backward(s, shape(), dq_.get(), dk_.get(), dv_.get(), out.get(), lse.get(), d_.get(), gq.get(), gk.get(), gv.get());
  }
};

// Eager, then captured into a graph over poisoned results: `work(stream)` must give the same bits in `results`.
template <class Work, class... B> void same_when_captured(Work const& work, B&... results) {
  cudaStream_t s;
  check(cudaStreamCreate(&s));
  work(s);
  check(cudaStreamSynchronize(s));
  auto const eager = std::make_tuple(results.read()...);
  (results.poison(), ...);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  work(s);
  check(cudaStreamEndCapture(s, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphLaunch(exec, s));
  check(cudaStreamSynchronize(s));
  auto const captured = std::make_tuple(results.read()...);
  CHECK(std::apply([&](auto const&... a) { return std::apply([&](auto const&... b) { return (help::same_bits(a, b) && ...); }, captured); },
                   eager));
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph), cudaStreamDestroy(s);
}
}  // namespace

TEST_CASE("cuda: attention and its gradients follow the CPU's in double, eagerly and captured") {
  for (problem const& p : problems) {
    CAPTURE(p.lengths.back());
    CAPTURE(p.head_dim);
    run r(p, 7);
    same_when_captured([&](cudaStream_t s) { r.forward(s), r.backward(s); }, r.out, r.lse, r.gq, r.gk, r.gv);
    auto const q = widen<double>(r.q), k = widen<double>(r.k), v = widen<double>(r.v), dout = widen<double>(r.dout);
    std::vector<double> out(q.size()), lse(p.tokens() * p.heads), dq(q.size()), dk(k.size()), dv(k.size());
    kernels::cpu_context on;
    double const scale = double(p.scale());
    kernels::attention(on, p.lengths.size(), r.cu.data(), p.heads, p.kv_heads, p.head_dim, scale, q.data(), k.data(), v.data(), out.data(),
                       lse.data());
    kernels::attention_backward(on, p.lengths.size(), r.cu.data(), p.heads, p.kv_heads, p.head_dim, scale, q.data(), k.data(), v.data(),
                                out.data(), lse.data(), dout.data(), dq.data(), dk.data(), dv.data());
    CHECK(help::distance(widen<double>(r.out.read()), out) < 6e-3);
    CHECK(help::distance(r.lse.read(), lse) < 3e-6);
    CHECK(help::distance(widen<double>(r.gq.read()), dq) < 1.2e-2);
    CHECK(help::distance(widen<double>(r.gk.read()), dk) < 1.2e-2);
    CHECK(help::distance(widen<double>(r.gv.read()), dv) < 1.2e-2);
  }
}

namespace {
// Pages of all sequences of a problem, in random places; layer 1 of 2.
template <class Kv> struct pages {
  static constexpr size_t layers = 2, layer = 1;
  size_t width, count;
  std::vector<i32> table, sequence, position;
  buffer<Kv> data;
  buffer<i32> dtable;
  kernels::paged_pool<Kv> pool;
  static size_t widest(problem const& p) {
    return static_cast<size_t>((*std::max_element(p.lengths.begin(), p.lengths.end()) + 63) / 64) + 1;
  }
  static std::vector<i32> shuffled(size_t n) {
    std::vector<i32> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<i32>(i);
    std::shuffle(x.begin(), x.end(), std::mt19937(5));
    return x;
  }
  explicit pages(problem const& p)
      : width(widest(p))
      , count(width * p.lengths.size())
      , table(shuffled(count))
      , data(count * kernels::page_elements<Kv>(layers, p.kv_heads, p.head_dim))
      , dtable(table)
      , pool{data.get(), layers, p.kv_heads, p.head_dim, dtable.get(), width} {
    for (size_t s = 0; s < p.lengths.size(); ++s)
      for (i32 t = 0; t < p.lengths[s]; ++t) sequence.push_back(static_cast<i32>(s)), position.push_back(t);
  }
};
template <class T> std::vector<T> gather(std::vector<T> const& x, std::vector<size_t> const& rows, size_t width) {
  std::vector<T> y;
  for (size_t r : rows)
    y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(r * width), x.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
  return y;
}
problem const paged_problems[] = {{{1, 63, 64, 65, 200, 255, 256, 257}, 4, 1, 128},
                                  {{1500, 30, 900}, 8, 2, 128},
                                  {{1100, 64, 5}, 16, 8, 64},
                                  {{300, 40}, 3, 1, 80},
                                  {{2100, 700}, 8, 1, 128},
                                  {{520}, 20, 1, 64}};
}  // namespace

TEST_CASE("cuda: attention over bf16 pages has the bits of attention, in any batch") {
  for (problem const& p : paged_problems) {
    CAPTURE(p.lengths.front());
    run r(p, 11);
    r.forward(nullptr);
    auto const expected = r.out.read();
    pages<bf16> x(p);
    buffer<i32> const sequence(x.sequence), position(x.position);
    device::paged_write(nullptr, x.pool, x.layer, p.tokens(), sequence.get(), position.get(), r.dk_.get(), r.dv_.get());
    size_t const width = p.heads * p.head_dim;
    std::mt19937 random(3);
    for (size_t batch : {size_t(1), size_t(2), size_t(7), size_t(32), size_t(129), size_t(256), p.tokens()}) {
      std::vector<size_t> rows(batch);
      for (size_t i = 0; i < batch; ++i)  // some rows follow the row before, as in prefill
        rows[i] = batch == p.tokens() ? i : i > 0 && random() % 3 && rows[i - 1] + 1 < p.tokens() ? rows[i - 1] + 1 : random() % p.tokens();
      buffer<i32> const s(gather(x.sequence, rows, 1)), t(gather(x.position, rows, 1));
      buffer<bf16> const q(gather(r.q, rows, width));
      buffer<bf16> out(batch * width);
      same_when_captured(
          [&](cudaStream_t on) {
            device::attention_paged(on, x.pool, x.layer, batch, s.get(), t.get(), p.heads, p.scale(), q.get(), out.get());
          },
          out);
      CAPTURE(batch);
      CHECK(help::same_bits(out.read(), gather(expected, rows, width)));
    }
  }
}

TEST_CASE("cuda: f8e4m3 pages have the CPU's bytes, attention over them its values") {
  for (problem const& p : paged_problems) {
    if (p.tokens() > 1400) continue;
    CAPTURE(p.lengths.front());
    run r(p, 13);
    pages<f8e4m3> x(p);
    buffer<i32> const sequence(x.sequence), position(x.position);
    device::paged_write(nullptr, x.pool, x.layer, p.tokens(), sequence.get(), position.get(), r.dk_.get(), r.dv_.get());
    buffer<bf16> out(r.q.size());
    same_when_captured(
        [&](cudaStream_t on) {
          device::attention_paged(on, x.pool, x.layer, p.tokens(), sequence.get(), position.get(), p.heads, p.scale(), r.dq_.get(),
                                  out.get());
        },
        out);

    auto const q = widen<float>(r.q), k = widen<float>(r.k), v = widen<float>(r.v);
    std::vector<f8e4m3> data(x.count * kernels::page_elements<f8e4m3>(x.layers, p.kv_heads, p.head_dim), f8e4m3{0xff});
    kernels::paged_pool<f8e4m3> const pool{data.data(), x.layers, p.kv_heads, p.head_dim, x.table.data(), x.width};
    std::vector<float> expected(q.size());
    kernels::cpu_context on;
    kernels::paged_write(on, pool, x.layer, p.tokens(), x.sequence.data(), x.position.data(), k.data(), v.data());
    kernels::attention_paged(on, pool, x.layer, p.tokens(), x.sequence.data(), x.position.data(), p.heads, p.scale(), q.data(),
                             expected.data());
    CHECK(help::same_bits(x.data.read(), data));
    CHECK(help::distance(widen<float>(out.read()), expected) < 6e-3);
  }
}

TEST_CASE("cuda: a row without a token is neither written to a page nor computed") {
  problem const p{{70}, 4, 2, 64};
  run r(p, 17);
  pages<bf16> x(p);
  std::vector<i32> sequence = x.sequence, position = x.position;
  buffer<i32> const all(sequence), at(position);
  device::paged_write(nullptr, x.pool, x.layer, p.tokens(), all.get(), at.get(), r.dk_.get(), r.dv_.get());
  auto const before = x.data.read();
  for (size_t i = 0; i < 70; ++i) (i % 2 ? sequence : position)[i] = -1;
  buffer<i32> const none(sequence), nowhere(position);
  device::paged_write(nullptr, x.pool, x.layer, p.tokens(), none.get(), nowhere.get(), r.dv_.get(), r.dk_.get());
  CHECK(help::same_bits(before, x.data.read()));
  device::attention_paged(nullptr, x.pool, x.layer, p.tokens(), none.get(), nowhere.get(), p.heads, p.scale(), r.dq_.get(), r.out.get());
  for (bf16 b : r.out.read()) CHECK(b.bits == 0xffff);
}

namespace {
template <class Kv>
void groups_change_no_bit(problem const& p, i32 shared, std::vector<size_t> const& sizes, std::vector<size_t> const& dead) {
  run r(p, 19);
  pages<Kv> x(p);
  size_t const n = p.lengths.size(), width = p.heads * p.head_dim, whole = static_cast<size_t>(shared) * 4;
  std::vector<i32> sequence, position, members(n), segments(n), written = x.sequence;
  size_t first = 0;
  for (size_t size : sizes) {
    members[first] = static_cast<i32>(size), segments[first] = shared;
    for (size_t s = first; s < first + size; ++s)
      for (size_t k = 0; k < whole; ++k) x.table[s * x.width + k] = x.table[first * x.width + k];
    for (size_t i = 0; i < written.size(); ++i)  // shared tokens are the first member's
      if (auto const s = static_cast<size_t>(x.sequence[i]); s > first && s < first + size && x.position[i] < shared * 256) written[i] = -1;
    first += size;
  }
  for (size_t s = 0; s < n; ++s) sequence.push_back(static_cast<i32>(s)), position.push_back(p.lengths[s] - 1);
  for (size_t s : dead) sequence[s] = position[s] = -1;
  buffer<i32> const table(x.table), to(written), at(x.position), rows(sequence), last(position), m(members), k(segments);
  x.pool.table = table.get();
  device::paged_write(nullptr, x.pool, x.layer, p.tokens(), to.get(), at.get(), r.dk_.get(), r.dv_.get());
  buffer<bf16> alone(n * width), together(n * width);
  device::attention_paged(nullptr, x.pool, x.layer, n, rows.get(), last.get(), p.heads, p.scale(), r.dq_.get(), alone.get());
  same_when_captured(
      [&](cudaStream_t on) {
        device::attention_paged(on, x.pool, x.layer, n, rows.get(), last.get(), p.heads, p.scale(), r.dq_.get(), together.get(), m.get(),
                                k.get());
      },
      together);
  CHECK(help::same_bits(alone.read(), together.read()));
}
}  // namespace

TEST_CASE_TEMPLATE("cuda: members of a group read the pages that they share once, with the same bits", Kv, bf16, f8e4m3) {
  groups_change_no_bit<Kv>({{600, 513, 1300, 520, 777, 514, 900, 640}, 4, 2, 128}, 2, {8}, {});
  groups_change_no_bit<Kv>({{600, 513, 1300, 520, 777, 514, 900, 640}, 4, 2, 128}, 2, {8}, {0, 3, 7});
  groups_change_no_bit<Kv>({{300, 258, 700, 257, 400, 3000, 600}, 12, 4, 64}, 1, {3, 4}, {4});
  groups_change_no_bit<Kv>({{300, 258, 700, 257}, 8, 2, 128}, 0, {1, 2, 1}, {1, 2});
  groups_change_no_bit<Kv>({{1100, 1030, 1025}, 16, 1, 128}, 4, {1, 1, 1}, {});
}
