// kernels.cpp — time and rate of every CPU kernel, at the shapes of a 20M-parameter model (hidden 384, intermediate 1024, 6 query and 2
// key/value heads of 64, vocabulary 4096). Matrix products stand beside OpenBLAS in the same run, where it was found: the ratio is what
// exactness costs.
//   kernels [threads]
#include <cstdio>
#include <cstdlib>

#include <weft/kernels/adamw.hpp>
#include <weft/kernels/attention.hpp>
#include <weft/kernels/embedding.hpp>
#include <weft/kernels/head.hpp>
#include <weft/kernels/paged.hpp>
#include <weft/kernels/rmsnorm.hpp>
#include <weft/kernels/rope.hpp>
#include <weft/kernels/sampling.hpp>
#include <weft/kernels/swiglu.hpp>

#include "measure.hpp"

using namespace weft;
using namespace weft::kernels;
using namespace measure;

namespace {
void line(char const* op, char const* shape, double time, double rate, char const* unit) {
  std::printf("%-22s %-26s %10.1f us %8.1f %s\n", op, shape, time * 1e6, rate * 1e-9, unit);
}

struct ratio {
  double log_sum = 0;
  int count = 0;
};
void line(cpu_context& on, char const* what, product const& p, ratio& all) {
  times const t = compare(on, p);
  std::printf("%-22s %5zu x %5zu x %5zu      %10.1f us %8.1f GFLOP/s", what, p.m, p.n, p.k, t.own * 1e6, p.flops() / t.own * 1e-9);
  if (t.blas > 0) {
    std::printf("   OpenBLAS %8.1f   ratio %.2f", p.flops() / t.blas * 1e-9, t.blas / t.own);
    all.log_sum += std::log(t.blas / t.own), ++all.count;
  }
  std::printf("\n");
}
}  // namespace

int main(int argc, char** argv) {
  threads pool(argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 0);
  cpu_context on{&pool};
  use_threads(pool.size());
  std::printf("threads %zu, vectors of %zu bytes; best of %s\n", pool.size(), vector_bytes, basis_name());
  size_t const hidden = 384, inter = 1024, tokens = 2048, heads = 6, kv_heads = 2, dim = 64, vocab = 4096, slots = 64;
  ratio square, training, decode, single;
  line(on, "sgemm", {form::forward, 1024, 1024, 1024}, square);
  for (auto [n, k] : {std::pair{hidden, hidden}, {inter, hidden}, {hidden, inter}, {vocab, hidden}}) {
    line(on, "linear forward", {form::forward, tokens, n, k}, training);
    line(on, "linear input gradient", {form::input_gradient, tokens, k, n}, training);
    line(on, "linear weight gradient", {form::weight_gradient, n, k, tokens}, training);
  }
  for (size_t m : {slots, size_t{16}})
    for (auto [n, k] : {std::pair{hidden, hidden}, {inter, hidden}, {hidden, inter}, {vocab, hidden}})
      line(on, "linear decode", {form::forward, m, n, k}, decode);
  line(on, "linear decode", {form::forward, 1, inter, hidden}, single);

  {
    i32 const cu[] = {0, 512, 1024, 1536, 2048};
    auto const q = numbers(tokens * heads * dim), k = numbers(tokens * kv_heads * dim), v = k;
    std::vector<f32> out(q.size()), lse(tokens * heads), dq(q.size()), dk(k.size()), dv(k.size());
    double const flops = 4.0 * 4 * 512 * 513 / 2 * double(heads * dim);
    double time =
        seconds([&] { attention(on, 4, cu, heads, kv_heads, dim, 0.125f, q.data(), k.data(), v.data(), out.data(), lse.data()); });
    line("attention", "4 x 512, 6/2 x 64", time, flops / time, "GFLOP/s");
    time = seconds([&] {
      attention_backward(on, 4, cu, heads, kv_heads, dim, 0.125f, q.data(), k.data(), v.data(), out.data(), lse.data(), q.data(), dq.data(),
                         dk.data(), dv.data());
    });
    line("attention_backward", "4 x 512, 6/2 x 64", time, 2.5 * flops / time, "GFLOP/s");
  }
  auto const paged = [&]<class Kv>(Kv, char const* name) {
    size_t const length = 512, pages = slots * length / page_tokens;
    std::vector<Kv> data(pages * page_elements<Kv>(1, kv_heads, dim));
    std::vector<i32> table(pages), sequence(slots * length), position(slots * length), last(slots, i32(length - 1)), slot(slots);
    for (size_t i = 0; i < pages; ++i) table[i] = i32(i);
    for (size_t i = 0; i < sequence.size(); ++i) sequence[i] = i32(i / length), position[i] = i32(i % length);
    for (size_t i = 0; i < slots; ++i) slot[i] = i32(i);
    paged_pool<Kv> const pages_of{data.data(), 1, kv_heads, dim, table.data(), length / page_tokens};
    auto const k = numbers(sequence.size() * kv_heads * dim), q = numbers(slots * heads * dim);
    std::vector<f32> out(q.size());
    double time = seconds([&] { paged_write(on, pages_of, 0, sequence.size(), sequence.data(), position.data(), k.data(), k.data()); });
    line("paged_write", name, time, double(k.size() * 2 * sizeof(f32)) / time, "GB/s");
    time = seconds([&] { attention_paged(on, pages_of, 0, slots, slot.data(), last.data(), heads, 0.125f, q.data(), out.data()); });
    line("attention_paged", name, time, double(data.size() * sizeof(Kv)) / time, "GB/s");
  };
  paged(f32{}, "64 slots at 512, f32");
  paged(f8e4m3{}, "64 slots at 512, f8e4m3");

  {
    auto const x = numbers(tokens * inter), w = numbers(inter);
    std::vector<f32> y(x), z(x), inverse(tokens);
    double const bytes = double(tokens * hidden * sizeof(f32)), wide = double(tokens * inter * sizeof(f32));
    double time = seconds([&] { rmsnorm(on, tokens, hidden, x.data(), w.data(), 1e-5f, y.data(), inverse.data()); });
    line("rmsnorm", "2048 x 384", time, 2 * bytes / time, "GB/s");
    time = seconds([&] { rmsnorm_backward(on, tokens, hidden, x.data(), w.data(), inverse.data(), x.data(), y.data(), z.data()); });
    line("rmsnorm_backward", "2048 x 384", time, 4 * bytes / time, "GB/s");
    time = seconds([&] { swiglu(on, tokens * inter, x.data(), x.data(), y.data()); });
    line("swiglu", "2048 x 1024", time, 3 * wide / time, "GB/s");
    time = seconds([&] { swiglu_backward(on, tokens * inter, x.data(), x.data(), x.data(), y.data(), z.data()); });
    line("swiglu_backward", "2048 x 1024", time, 5 * wide / time, "GB/s");
    std::vector<i32> positions(tokens);
    for (size_t i = 0; i < tokens; ++i) positions[i] = i32(i % 512);
    auto const table = numbers(512 * dim);
    time = seconds([&] { rope(on, tokens, heads, dim, positions.data(), table.data(), y.data()); });
    line("rope", "2048 x 6 x 64", time, 2 * bytes / time, "GB/s");
    time = seconds([&] { embed_backward(on, tokens, hidden, positions.data(), x.data(), z.data()); });
    line("embed_backward", "2048 x 384", time, 3 * bytes / time, "GB/s");
  }
  {
    auto const logits = numbers(vocab);
    std::vector<f32> room(vocab);
    double time = seconds([&] { softmax_row(vocab, logits.data(), 0.9f); });
    line("softmax_row", "4096, one thread", time, vocab / time, "G/s");
    u32 draw = 0;
    time = seconds([&] { sample_row(vocab, logits.data(), room.data(), sampling{}, token_rules{}, 1, ++draw, 2, 3); });
    line("sample_row", "4096, one thread", time, vocab / time, "G/s");
    time = seconds([&] { sample_row(vocab, logits.data(), room.data(), sampling{1, 50, 0.9f}, token_rules{}, 1, ++draw, 2, 3); });
    line("sample_row", "4096, top_k 50, top_p 0.9", time, vocab / time, "G/s");
  }
  {
    size_t const n = 20'000'000;
    std::vector<f32> w(n, 1), m(n), v(n), g(n, 0.1f);
    double time = seconds([&] { adamw(on, n, w.data(), m.data(), v.data(), g.data(), adamw_step{1e-4}, 1.0f); });
    line("adamw", "20M", time, 28.0 * n / time, "GB/s");
    time = seconds([&] { sum_of_squares(on, n, g.data()); });
    line("sum_of_squares", "20M", time, 4.0 * n / time, "GB/s");
  }
  line("parallel_for", "fork and join", seconds([&] { parallel_for(on, pool.size(), 1, [](size_t, size_t) {}); }), 0, "");
  if (square.count) {
    std::printf("speed against OpenBLAS, geometric mean: 1024^3 %.2f, training %.2f, decode at 16 and 64 rows %.2f, one row %.2f\n",
                std::exp(square.log_sum), std::exp(training.log_sum / training.count), std::exp(decode.log_sum / decode.count),
                std::exp(single.log_sum));
  }
}
