// Kernels of rows and flat arrays against their CPU versions.
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/cpu/f8.hpp>
#include <weft/kernels/cuda/adamw.cuh>
#include <weft/kernels/cuda/embedding.cuh>
#include <weft/kernels/cuda/f8.cuh>
#include <weft/kernels/cuda/rmsnorm.cuh>
#include <weft/kernels/cuda/rope.cuh>
#include <weft/kernels/cuda/swiglu.cuh>
#include <weft/kernels/elementwise.hpp>
#include <weft/kernels/embedding.hpp>
#include <weft/kernels/rmsnorm.hpp>
#include <weft/kernels/rope.hpp>
#include <weft/kernels/swiglu.hpp>

#include "device.cuh"

namespace {
using namespace test;
using weft::bf16;
using weft::i32;
kernels::cpu_context cpu;

void norms(kernels::cuda_context& on, size_t rows, size_t width) {
  std::string const what = "rmsnorm " + std::to_string(rows) + " x " + std::to_string(width);
  array<bf16> x(random_bf16(rows * width)), w(random_bf16(width)), y(rows * width), r(random_bf16(rows * width)),
      dy(random_bf16(rows * width));
  array<bf16> dx(random_bf16(rows * width)), sum(r.start), y2(rows * width), y3(rows * width);
  array<float> inverse(rows), dw(random_f32(width)), inverse2(rows);
  both(on, what, {&y, &inverse}, [&] { kernels::rmsnorm(on, rows, width, x.data, w.data, 1e-6f, y.data, inverse.data); });
  std::vector<float> want(rows * width), want_inverse(rows);
  auto const fx = wide(x.start), fw = wide(w.start), fdy = wide(dy.start);
  kernels::rmsnorm(cpu, rows, width, fx.data(), fw.data(), 1e-6f, want.data(), want_inverse.data());
  near(y.get(), want, 4e-3, what);
  near(inverse.get(), want_inverse, 1e-5, what + " inverse");

  std::vector<bf16> const all = y.get();
  size_t const last = rows - 1;
  y2.reset();
  kernels::rmsnorm(on, 1, width, x.data + last * width, w.data, 1e-6f, y2.data, static_cast<float*>(nullptr));
  check(cudaStreamSynchronize(on.stream), "sync");
  expect(same(y2.get().data(), all.data() + last * width, width), what + ": a row alone differs");

  both(on, what + " fused add", {&sum, &y2, &inverse},
       [&] { kernels::add_rmsnorm(on, rows, width, x.data, sum.data, w.data, 1e-6f, y2.data, inverse.data); });
  std::vector<bf16> const fused_sum = sum.get();
  sum.reset();
  kernels::add(on, rows * width, x.data, sum.data);
  kernels::rmsnorm(on, rows, width, sum.data, w.data, 1e-6f, y3.data, inverse2.data);
  check(cudaStreamSynchronize(on.stream), "sync");
  expect(same(fused_sum.data(), sum.get().data(), rows * width) && same(y2.get().data(), y3.get().data(), rows * width) &&
             same(inverse.get().data(), inverse2.get().data(), rows),
         what + ": fused add differs");

  array<float> given(want_inverse);
  both(on, what + " backward", {&dx, &dw},
       [&] { kernels::rmsnorm_backward(on, rows, width, x.data, w.data, given.data, dy.data, dx.data, dw.data); });
  std::vector<float> want_dx = wide(dx.start), want_dw = dw.start;
  kernels::rmsnorm_backward(cpu, rows, width, fx.data(), fw.data(), want_inverse.data(), fdy.data(), want_dx.data(), want_dw.data());
  near(dx.get(), want_dx, 4e-3, what + " dx");
  near(dw.get(), want_dw, 1e-5, what + " dweight");
}
void ropes(kernels::cuda_context& on, size_t tokens, size_t heads, size_t head_dim) {
  std::string const what = "rope " + std::to_string(head_dim);
  array<bf16> x(random_bf16(tokens * heads * head_dim));
  array<i32> positions(random_ids(tokens, 100));
  array<float> table(random_f32(100 * head_dim));
  std::vector<float> want = wide(x.start);
  both(on, what, {&x}, [&] { kernels::rope(on, tokens, heads, head_dim, positions.data, table.data, x.data); });
  kernels::rope(cpu, tokens, heads, head_dim, positions.start.data(), table.start.data(), want.data());
  near(x.get(), want, 4e-3, what);
  want = wide(x.start);
  both(on, what + " backward", {&x}, [&] { kernels::rope_backward(on, tokens, heads, head_dim, positions.data, table.data, x.data); });
  kernels::rope_backward(cpu, tokens, heads, head_dim, positions.start.data(), table.start.data(), want.data());
  near(x.get(), want, 4e-3, what + " backward");
}
void swiglus(kernels::cuda_context& on, size_t n) {
  std::string const what = "swiglu " + std::to_string(n);
  array<bf16> gate(random_bf16(n, 4)), up(random_bf16(n)), d(random_bf16(n)), out(n), dgate(n), dup(n);
  auto const g = wide(gate.start), u = wide(up.start), f = wide(d.start);
  std::vector<float> want(n), want2(n);
  both(on, what, {&out}, [&] { kernels::swiglu(on, n, gate.data, up.data, out.data); });
  kernels::swiglu(cpu, n, g.data(), u.data(), want.data());
  near(out.get(), want, 4e-3, what);
  both(on, what + " backward", {&dgate, &dup}, [&] { kernels::swiglu_backward(on, n, gate.data, up.data, d.data, dgate.data, dup.data); });
  kernels::swiglu_backward(cpu, n, g.data(), u.data(), f.data(), want.data(), want2.data());
  near(dgate.get(), want, 4e-3, what + " dgate");
  near(dup.get(), want2, 4e-3, what + " dup");
}
void elementwise(kernels::cuda_context& on, size_t rows, size_t width) {
  std::string const what = "elementwise " + std::to_string(rows) + " x " + std::to_string(width);
  array<bf16> x(random_bf16(rows * width)), y(random_bf16(rows * width)), bias(random_bf16(width));
  array<float> dbias(random_f32(width)), filled(rows * width);
  std::vector<float> want = wide(y.start), want_dbias = dbias.start;
  both(on, what + " add", {&y}, [&] { kernels::add(on, rows * width, x.data, y.data); });
  kernels::add(cpu, rows * width, wide(x.start).data(), want.data());
  near(y.get(), want, 4e-3, what + " add");
  want = wide(y.start);
  both(on, what + " bias", {&y}, [&] { kernels::add_bias(on, rows, width, bias.data, y.data); });
  kernels::add_bias(cpu, rows, width, wide(bias.start).data(), want.data());
  near(y.get(), want, 4e-3, what + " bias");
  both(on, what + " dbias", {&dbias}, [&] { kernels::bias_backward(on, rows, width, x.data, dbias.data); });
  kernels::bias_backward(cpu, rows, width, wide(x.start).data(), want_dbias.data());
  near(dbias.get(), want_dbias, 1e-5, what + " dbias");
  both(on, what + " fill", {&filled}, [&] { kernels::fill(on, rows * width, 3.0f, filled.data); });
  near(filled.get(), std::vector<float>(rows * width, 3.0f), 0, what + " fill");
}
void embeddings(kernels::cuda_context& on, size_t tokens, size_t width, i32 vocab) {
  std::string const what = "embedding " + std::to_string(tokens) + " x " + std::to_string(width);
  array<bf16> table(random_bf16(size_t(vocab) * width)), out(tokens * width), dout(random_bf16(tokens * width));
  array<float> dtable(random_f32(size_t(vocab) * width));
  array<i32> ids(random_ids(tokens, vocab));
  both(on, what, {&out}, [&] { kernels::embed(on, tokens, width, ids.data, table.data, out.data); });
  std::vector<float> want(tokens * width), want_d = dtable.start;
  kernels::embed(cpu, tokens, width, ids.start.data(), wide(table.start).data(), want.data());
  near(out.get(), want, 0, what);
  both(on, what + " backward", {&dtable}, [&] { kernels::embed_backward(on, tokens, width, ids.data, dout.data, dtable.data); });
  kernels::embed_backward(cpu, tokens, width, ids.start.data(), wide(dout.start).data(), want_d.data());
  expect(same(dtable.get().data(), want_d.data(), want_d.size()), what + ": gradient differs from the sum in order of tokens");

  std::vector<i32> order(tokens);
  for (size_t i = 0; i < tokens; ++i) order[i] = static_cast<i32>(tokens - 1 - i);
  order[0] = -1;
  array<i32> index(order);
  array<bf16> moved(tokens * width), back(tokens * width);
  both(on, what + " gather and scatter", {&moved, &back}, [&] {
    kernels::gather_rows(on, tokens, width, index.data, dout.data, moved.data);
    kernels::scatter_rows(on, tokens, width, index.data, moved.data, tokens, back.data);
  });
  std::vector<bf16> expected = dout.start;
  for (size_t i = 0; i < width; ++i) expected[(tokens - 1) * width + i] = {0};  // the row that index[0] would have named
  expect(same(back.get().data(), expected.data(), expected.size()), what + ": gather, then scatter");
}
void eights(kernels::cuda_context& on) {
  std::vector<bf16> every(65536);
  for (size_t i = 0; i < every.size(); ++i) every[i].bits = static_cast<std::uint16_t>(i);
  array<bf16> x(every), back(every.size());
  array<f8e4m3> small(every.size());
  array<float> scale(every.size());
  both(on, "f8", {&small, &scale, &back}, [&] {
    kernels::to_f8(on, every.size(), 1, x.data, small.data, scale.data);
    kernels::from_f8(on, every.size(), 1, small.data, scale.data, back.data);
  });
  auto const s = small.get();
  auto const f = scale.get();
  auto const b = back.get();
  bool codes = true, scales = true, values = true;
  for (size_t i = 0; i < every.size(); ++i) {
    float const v = wide(every[i]), amax = std::fmax(std::fabs(v), 0x1p-126f);
    float const want = std::isfinite(v) ? amax / 448 : NAN;
    scales = scales && (f[i] == want || (f[i] != f[i] && want != want));
    codes = codes && ((s[i].bits & 0x7f) == (kernels::to_f8e4m3(v / want).bits & 0x7f));
    float const r = kernels::from_f8e4m3(s[i]) * f[i];
    values = values && (wide(b[i]) == wide(narrow(r)) || (r != r && wide(b[i]) != wide(b[i])));
  }
  expect(codes && scales && values, std::string("f8: codes ") + (codes ? "good" : "bad") + ", scales " + (scales ? "good" : "bad") +
                                        ", values " + (values ? "good" : "bad"));
  std::vector<bf16> spread = random_bf16(40 * 128, 3);
  array<bf16> rows(spread);
  array<f8e4m3> out(spread.size());
  array<float> sc(40);
  both(on, "f8 rows", {&out, &sc}, [&] { kernels::to_f8(on, 40, 128, rows.data, out.data, sc.data); });
  bool good = true;
  auto const o = out.get();
  auto const c = sc.get();
  for (size_t i = 0; i < spread.size(); ++i) good = good && o[i].bits == kernels::to_f8e4m3(wide(spread[i]) / c[i / 128]).bits;
  expect(good, "f8 rows: codes");
}
// Whole steps, from zero moments, against the CPU with the same rounding; the weights' bf16 copy, and a gradient that is not finite.
void optimizer(kernels::cuda_context& on, size_t n, kernels::moment_format format, float most_norm) {
  char const* const names[] = {"f32", "bf16", "f8"};
  std::string const what = std::string("adamw ") + names[int(format)] + " " + std::to_string(n);
  std::vector<float> w0 = random_f32(n), g0 = random_f32(n);
  kernels::adamw_options o{0.9, 0.99, 1e-8, 0.1, most_norm, format};
  std::vector<unsigned char> none(kernels::moment_layout_of(format, n).end);
  array<float> master(w0), g(g0), lr(std::vector<float>{1e-2f}), norm(1);
  array<bf16> w(n);
  array<unsigned char> moments(none);
  array<i32> counted(std::vector<i32>{3}), steps(std::vector<i32>{0});
  auto const go = [&] {
    kernels::clipped_adamw(on, n, o, g.data, counted.data, lr.data, w.data, master.data, moments.data, steps.data, norm.data);
  };
  both(on, what, {&master, &w, &moments, &steps, &norm}, go);
  std::vector<float> fw = w0, cpu_norm(1), cpu_lr{1e-2f};
  std::vector<unsigned char> m = none;
  i32 cpu_steps = 0, some = 3;
  moments.reset(), master.reset(), steps.reset();
  for (int step = 0; step < 6; ++step) {
    g.start = random_f32(n);
    for (size_t i = 0; i < n; i += 7) g.start[i] *= 1e-3f;  // small beside its neighbours
    g.reset();
    go();
    kernels::clipped_adamw<float>(cpu, n, o, g.start.data(), &some, cpu_lr.data(), fw.data(), nullptr, m.data(), &cpu_steps, cpu_norm.data());
  }
  check(cudaStreamSynchronize(on.stream), "sync");
  near(master.get(), fw, 2e-4, what + " master");
  near(w.get(), fw, 4e-3, what + " bf16 weights");
  near(norm.get(), cpu_norm, 1e-6, what + " norm");
  expect(steps.get()[0] == 6, what + ": steps");
  auto const before = master.get();
  auto const moments_before = moments.get();
  g.start[n / 2] = NAN, g.reset();
  go();
  check(cudaStreamSynchronize(on.stream), "sync");
  expect(same(master.get().data(), before.data(), n) && moments.get() == moments_before && steps.get()[0] == 6,
         what + ": a NaN gradient changes something");
  // without masters the weights are rounded stochastically: small steps arrive on the average
  std::vector<bf16> ones(n, narrow(1.0f));
  array<bf16> alone(ones);
  g.start.assign(n, 1.0f), g.reset(), moments.reset(), steps.reset();
  lr.start[0] = 1e-4f, lr.reset(), o.weight_decay = 0, o.clip_grad = 0;
  for (int step = 0; step < 10; ++step)
    kernels::clipped_adamw(on, n, o, g.data, counted.data, lr.data, alone.data, nullptr, moments.data, steps.data, norm.data);
  check(cudaStreamSynchronize(on.stream), "sync");
  double mean = 0;
  auto const left = wide(alone.get());
  for (size_t i = 0; i < n; ++i) mean += double(left[i]) / double(n);
  expect(n < 1000 || std::fabs(mean - (1 - 1e-3)) < 1e-4, what + ": without masters, the mean is " + std::to_string(mean));
}
}  // namespace

int main() {
  machine gpu;
  size_t const widths[] = {1, 24, 64, 128, 130, 576, 1024, 1536, 2048, 2049, 4096, 8192, 16384};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) norms(gpu.on, 37, widths[i]);
  norms(gpu.on, 5000, 128);
  norms(gpu.on, 1, 1024);
  ropes(gpu.on, 33, 3, 128), ropes(gpu.on, 5, 2, 64), ropes(gpu.on, 7, 1, 10);
  swiglus(gpu.on, 100'000), swiglus(gpu.on, 4'099), swiglus(gpu.on, 1);
  elementwise(gpu.on, 300, 1024), elementwise(gpu.on, 3, 17), elementwise(gpu.on, 1000, 130);
  embeddings(gpu.on, 1000, 64, 50), embeddings(gpu.on, 777, 300, 3), embeddings(gpu.on, 513, 1024, 5000), embeddings(gpu.on, 3, 5, 2);
  eights(gpu.on);
  using kernels::moment_format;
  optimizer(gpu.on, 100'003, moment_format::f32, 1.0f), optimizer(gpu.on, 5, moment_format::f32, 0.1f);
  optimizer(gpu.on, 200'000, moment_format::bf16, 0.0f), optimizer(gpu.on, 40'001, moment_format::bf16, 1000.0f);
  optimizer(gpu.on, 200'000, moment_format::f8, 0.0f), optimizer(gpu.on, 40'003, moment_format::f8, 1.0f);
  return report();
}
