// Matrix products, the head, and sampling against their CPU versions.
#include <weft/kernels/cuda/head.cuh>
#include <weft/kernels/cuda/sampling.cuh>
#include <weft/kernels/gemm.hpp>

#include "device.cuh"

namespace {
using namespace test;
using weft::bf16;
using weft::i32;
using weft::u32;
using weft::u64;
kernels::cpu_context cpu;

void products(kernels::cuda_context& on, size_t m, size_t n, size_t k) {
  std::string const what = "gemm " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k);
  size_t const rows = kernels::gemm_rows(m);
  array<bf16> a(random_bf16(rows * k)), b(random_bf16(n * k)), bt(random_bf16(k * n)), at(random_bf16(k * m)), c(rows * n);
  array<float> wide_c(rows * n), sum(random_f32(m * n));
  std::vector<float> want(m * n);
  kernels::gemm_nt(on, m, n, k, a.data, k, b.data, k, c.data, n, false);  // searches
  kernels::gemm_nt(on, m, n, k, a.data, k, b.data, k, wide_c.data, n, false);
  kernels::gemm_nn(on, m, n, k, a.data, k, bt.data, n, c.data, n, false);
  kernels::gemm_tn(on, m, n, k, at.data, m, bt.data, n, sum.data, n, true);
  both(on, what + " nt", {&c}, [&] { kernels::gemm_nt(on, m, n, k, a.data, k, b.data, k, c.data, n, false); });
  kernels::gemm_nt(cpu, m, n, k, wide(a.start).data(), k, wide(b.start).data(), k, want.data(), n, false);
  near(c.get(), want, 4e-3, what + " nt");
  both(on, what + " nt f32", {&wide_c}, [&] { kernels::gemm_nt(on, m, n, k, a.data, k, b.data, k, wide_c.data, n, false); });
  near(wide_c.get(), want, 1e-5, what + " nt f32");
  both(on, what + " nn", {&c}, [&] { kernels::gemm_nn(on, m, n, k, a.data, k, bt.data, n, c.data, n, false); });
  kernels::gemm_nn(cpu, m, n, k, wide(a.start).data(), k, wide(bt.start).data(), n, want.data(), n, false);
  near(c.get(), want, 4e-3, what + " nn");
  both(on, what + " tn", {&sum}, [&] { kernels::gemm_tn(on, m, n, k, at.data, m, bt.data, n, sum.data, n, true); });
  want = sum.start;
  kernels::gemm_tn(cpu, m, n, k, wide(at.start).data(), m, wide(bt.start).data(), n, want.data(), n, true);
  near(sum.get(), want, 1e-5, what + " tn");
}
void rows_are_alike(kernels::cuda_context& on, size_t n, size_t k) {
  std::string const what = "rows of gemm " + std::to_string(n) + " " + std::to_string(k);
  size_t const most = 1024, counts[] = {1, 5, 16, 33, 100, 200, 256, 300, 700, 1000};
  array<bf16> a(random_bf16(most * k)), b(random_bf16(n * k)), bt(random_bf16(n * k)), c(most * n);
  for (int form = 0; form < 2; ++form) {
    std::vector<bf16> reference;
    for (size_t i = sizeof counts / sizeof *counts; i-- > 0;) {
      size_t const m = counts[i], from = i % 2 ? (most - kernels::gemm_rows(m)) / 2 : 0;  // other places too
      c.reset();
      if (form == 0) kernels::gemm_nt(on, m, n, k, a.data + from * k, k, b.data, k, c.data, n, false);
      else kernels::gemm_nn(on, m, n, k, a.data + from * k, k, bt.data, n, c.data, n, false);
      check(cudaStreamSynchronize(on.stream), "gemm");
      std::vector<bf16> const got = c.get();
      if (reference.empty()) reference = got;
      size_t const offset = m == 1000 ? 0 : from;
      size_t const compared = offset + m <= 1000 ? m : 1000 - offset;
      expect(same(got.data(), reference.data() + offset * n, compared * n),
             what + (form ? " nn" : " nt") + ": m = " + std::to_string(m) + " differs");
    }
  }
}

// what a test's loss asks of a row, on both sides
struct weighted_loss {
  float const* weight;
  WEFT_HD kernels::token_gradient<float> operator()(size_t row, float log_prob, float entropy) const {
    return {weight[row] * (1 + 0.1f * log_prob), 0.01f * weight[row] * (1 + 0.1f * entropy)};
  }
};
template <class L> void heads(kernels::cuda_context& on, size_t rows, size_t width, size_t vocab, size_t chunk) {
  std::string const what = std::string("head ") + (sizeof(L) == 2 ? "bf16 " : "f32 ") + std::to_string(rows) + " " + std::to_string(width) +
                           " " + std::to_string(vocab);
  size_t const room = rows + kernels::gemm_rows(chunk);
  array<bf16> hidden(random_bf16(room * width)), weight(random_bf16(vocab * width, 0.3f)), dhidden(room * width);
  array<L> logits(kernels::gemm_rows(chunk) * vocab);
  std::vector<i32> ids = random_ids(rows, static_cast<i32>(vocab));
  ids[0] = static_cast<i32>(vocab) - 1;
  array<i32> targets(ids);
  std::vector<float> temperatures(rows, 1), weights = random_f32(rows);
  for (size_t r = 0; r < rows; ++r) temperatures[r] = r % 3 ? 1 : 0.7f;
  weights[rows / 2] = 0;
  array<float> it(temperatures), log_prob(rows), entropy(rows), dweight(random_f32(vocab * width)), w(weights), log_prob2(rows),
      entropy2(rows);
  auto const score = [&] {
    kernels::head_log_probs(on, rows, width, vocab, hidden.data, weight.data, targets.data, it.data, chunk, logits.data, log_prob2.data,
                            entropy2.data);
  };
  auto const loss = [&] {
    kernels::head_loss(on, rows, width, vocab, hidden.data, weight.data, targets.data, it.data, chunk, logits.data, weighted_loss{w.data},
                       log_prob.data, entropy.data, dhidden.data, dweight.data);
  };
  score(), loss();  // search
  both(on, what + " score", {&log_prob2, &entropy2}, score);
  both(on, what + " loss", {&log_prob, &entropy, &dhidden, &dweight}, loss);
  expect(same(log_prob.get().data(), log_prob2.get().data(), rows) && same(entropy.get().data(), entropy2.get().data(), rows),
         what + ": loss and score differ");
  std::vector<float> want(rows), want_entropy(rows), want_dhidden(rows * width), want_dweight = dweight.start, scratch(chunk * vocab);
  auto const fh = wide(hidden.start), fw = wide(weight.start);
  weighted_loss const host_loss{weights.data()};
  kernels::head_loss<float>(cpu, rows, width, vocab, fh.data(), fw.data(), ids.data(), temperatures.data(), chunk, scratch.data(),
                            host_loss, want.data(), want_entropy.data(), want_dhidden.data(), want_dweight.data());
  near(log_prob.get(), want, sizeof(L) == 2 ? 4e-3 : 1e-5, what + " log-prob");
  near(entropy.get(), want_entropy, sizeof(L) == 2 ? 1e-2 : 1e-4, what + " entropy");
  near(dhidden.get(), want_dhidden, sizeof(L) == 2 ? 2e-2 : 8e-3, what + " dhidden");
  near(dweight.get(), want_dweight, sizeof(L) == 2 ? 2e-2 : 8e-3, what + " dweight");
}
template <class L> std::vector<L> random_logits(size_t n, float deviation) {
  if constexpr (sizeof(L) == 2) return random_bf16(n, deviation);
  else return random_f32(n, deviation);
}
template <class L> void softmaxes(kernels::cuda_context& on, size_t rows, size_t vocab) {
  std::string const what = std::string("softmax ") + (sizeof(L) == 2 ? "bf16 " : "f32 ") + std::to_string(vocab);
  std::vector<L> x = random_logits<L>(rows * vocab, 3);
  std::vector<float> const f = wide(x);
  array<L> logits(x);
  array<i32> targets(random_ids(rows, static_cast<i32>(vocab)));
  std::vector<float> temperatures(rows, 1.25f), want(rows), want_entropy(rows);
  array<float> it(temperatures), log_prob(rows), entropy(rows), one(1), one_entropy(1);
  both(on, what, {&log_prob, &entropy},
       [&] { kernels::softmax_rows(on, rows, vocab, logits.data, targets.data, it.data, log_prob.data, entropy.data); });
  for (size_t r = 0; r < rows; ++r) {
    auto const sums = kernels::softmax_row(vocab, f.data() + r * vocab, 1.25f);
    want[r] = kernels::log_prob_of(sums, f[r * vocab + size_t(targets.start[r])], 1.25f);
    want_entropy[r] = sums.entropy;
  }
  near(log_prob.get(), want, 2e-6, what + " log-prob");
  near(entropy.get(), want_entropy, 1e-5, what + " entropy");
  size_t const last = rows - 1;
  kernels::softmax_rows(on, 1, vocab, logits.data + last * vocab, targets.data + last, it.data, one.data, one_entropy.data);
  check(cudaStreamSynchronize(on.stream), "sync");
  expect(same(one.get().data(), log_prob.get().data() + last, 1), what + ": a row alone differs");
  float const bad[] = {NAN, INFINITY, -INFINITY};
  for (int b = 0; b < 3; ++b) {
    if constexpr (sizeof(L) == 2) logits.start[vocab / 2] = narrow(bad[b]);
    else logits.start[vocab / 2] = bad[b];
    logits.reset();
    kernels::softmax_rows(on, rows, vocab, logits.data, targets.data, it.data, log_prob.data, entropy.data);
    check(cudaStreamSynchronize(on.stream), "sync");
    expect(std::isnan(entropy.get()[0]) && !std::isnan(entropy.get()[last]),
           what + ": a row with NaN or Inf must have NaN entropy, others not");
  }
}

template <class L> void samples(kernels::cuda_context& on, size_t vocab, float deviation, bool rules_too) {
  std::string const what =
      std::string("sampling ") + (sizeof(L) == 2 ? "bf16 " : "f32 ") + std::to_string(vocab) + (rules_too ? " with rules" : "");
  std::vector<kernels::sampling> how;
  auto const kind = [&](float temperature, i32 top_k, float top_p, float min_p) {
    kernels::sampling s;
    s.temperature = temperature, s.top_k = top_k, s.top_p = top_p, s.min_p = min_p;
    how.push_back(s);
  };
  kind(1, -1, 1, 0), kind(0, -1, 1, 0), kind(0.7f, -1, 1, 0), kind(1, 1, 1, 0), kind(1, 50, 1, 0), kind(1, 1 << 20, 1, 0),
      kind(1, -1, 0.9f, 0);
  kind(1, -1, 0.3f, 0), kind(1, -1, 1, 0.05f), kind(1.5f, 40, 0.8f, 0.02f), kind(1, 7, 0.999f, 0), kind(0.5f, 1000, 0.5f, 0),
      kind(1, -1, 0.0f, 0), kind(2, 3000, 0.99f, 0);
  size_t const each = 6, rows = how.size() * each;
  std::vector<L> x = random_logits<L>(rows * vocab, deviation);
  std::vector<kernels::sampling> settings(rows);
  std::vector<kernels::draw_counter> counters(rows);
  array<i32> forbidden(std::vector<i32>{3, 5, static_cast<i32>(vocab) - 2}), bias_ids(std::vector<i32>{1, 2, 9});
  array<float> bias(std::vector<float>{5.0f, -4.0f, 1.5f});
  std::vector<kernels::token_rules> device_rules(rows), host_rules(rows);
  for (size_t r = 0; r < rows; ++r) {
    settings[r] = how[r / each];
    counters[r] = {static_cast<u32>(r * 7), static_cast<u32>(r), static_cast<u32>(r * r)};
    if (rules_too) {
      host_rules[r] = {static_cast<i32>(vocab) - 1, 3, forbidden.start.data(), 3, bias_ids.start.data(), bias.start.data()};
      device_rules[r] = {static_cast<i32>(vocab) - 1, 3, forbidden.data, 3, bias_ids.data, bias.data};
    }
  }
  array<L> logits(x);
  array<kernels::sampling> s(settings);
  array<kernels::draw_counter> c(counters);
  array<kernels::token_rules> rules(device_rules);
  array<kernels::drawn<float>> out(rows);
  u64 const seed = 0x123456789abcdefull;
  auto const draw = [&] {
    kernels::sample_rows(on, rows, vocab, logits.data, s.data, rules_too ? rules.data : static_cast<kernels::token_rules*>(nullptr), seed,
                         c.data, out.data);
  };
  both(on, what, {&out}, draw);
  auto const got = out.get();
  std::vector<float> const f = wide(x);
  std::vector<float> room(vocab);
  size_t ids = 0, probs = 0, kept = 0, entropies = 0;
  double worst = 0;
  for (size_t r = 0; r < rows; ++r) {
    auto const& k = counters[r];
    auto const want =
        kernels::sample_row(vocab, f.data() + r * vocab, room.data(), settings[r], host_rules[r], seed, k.draw, k.sample, k.position);
    if (want.id != got[r].id) {
      ++ids;
      std::printf("  %s: row %zu, setting %zu: id %d, want %d\n", what.c_str(), r, r / each, got[r].id, want.id);
      continue;
    }
    probs += !(std::fabs(want.log_prob - got[r].log_prob) <= 1e-4);
    entropies += !(std::fabs(want.entropy - got[r].entropy) <= 1e-3);
    double const d = std::fabs(double(want.log_kept) - double(got[r].log_kept));
    if (!(d <= worst)) worst = d;
    kept += !(d <= 2e-3);
  }
  expect(ids == 0, what + ": " + std::to_string(ids) + " ids differ");
  expect(probs + entropies == 0, what + ": log-probs or entropies differ");
  expect(kept == 0, what + ": " + std::to_string(kept) + " kept masses differ, most " + std::to_string(worst));
  // what training computes for the drawn tokens, in one launch of other rows: the same bits
  std::vector<i32> drawn_ids(rows);
  std::vector<float> it(rows);
  for (size_t r = 0; r < rows; ++r) drawn_ids[r] = got[r].id, it[r] = kernels::inverse_temperature_of<float>(settings[r]);
  array<i32> targets(drawn_ids);
  array<float> temperature(it), log_prob(rows), entropy(rows);
  kernels::softmax_rows(on, rows, vocab, logits.data, targets.data, temperature.data, log_prob.data, entropy.data);
  check(cudaStreamSynchronize(on.stream), "sync");
  auto const lp = log_prob.get();
  size_t differing = 0;
  for (size_t r = 0; r < rows; ++r) differing += std::memcmp(&lp[r], &got[r].log_prob, 4) != 0;
  expect(differing == 0, what + ": " + std::to_string(differing) + " log-probs differ from the head's");
  // rows alone
  kernels::sample_rows(on, 1, vocab, logits.data + (rows - 1) * vocab, s.data + rows - 1,
                       rules_too ? rules.data + rows - 1 : static_cast<kernels::token_rules*>(nullptr), seed, c.data + rows - 1, out.data);
  check(cudaStreamSynchronize(on.stream), "sync");
  expect(std::memcmp(&out.get()[0], &got[rows - 1], sizeof got[0]) == 0, what + ": a row alone differs");
}
}  // namespace

int main() {
  machine gpu;
  kernels::gemm_plans plans("gemm_plans_of_tests");
  gpu.on.gemms = &plans;
  products(gpu.on, 37, 96, 128), products(gpu.on, 1, 64, 1024), products(gpu.on, 300, 136, 72), products(gpu.on, 8, 200, 40);
  rows_are_alike(gpu.on, 1024, 3072), rows_are_alike(gpu.on, 4096, 1024), rows_are_alike(gpu.on, 6144, 4096),
      rows_are_alike(gpu.on, 19200, 1024);
  heads<bf16>(gpu.on, 37, 64, 1000, 16), heads<float>(gpu.on, 37, 64, 1000, 16), heads<bf16>(gpu.on, 20, 128, 5000, 256),
      heads<float>(gpu.on, 3, 24, 264, 2);
  softmaxes<bf16>(gpu.on, 5, 10), softmaxes<float>(gpu.on, 5, 1025), softmaxes<bf16>(gpu.on, 9, 32003), softmaxes<float>(gpu.on, 9, 32000),
      softmaxes<bf16>(gpu.on, 3, 151936);
  samples<bf16>(gpu.on, 32000, 3, false), samples<float>(gpu.on, 5003, 2, false), samples<float>(gpu.on, 1000, 2, true),
      samples<bf16>(gpu.on, 12, 2, true), samples<bf16>(gpu.on, 40000, 0.01f, false);
  size_t unequal = 0;
  for (auto at = plans.plans().begin(); at != plans.plans().end(); ++at)
    if (!at->second.equal) ++unequal, std::printf("  no equal algorithm: %s\n", kernels::gemm_plans::text(at->first).c_str());
  expect(unequal == 0, "gemm: " + std::to_string(unequal) + " plans are not equal to the reference");
  kernels::gemm_plans again("gemm_plans_of_tests");
  expect(again.plans().size() == plans.plans().size(), "gemm: plans read from the file");
  gpu.on.gemms = &again;
  products(gpu.on, 37, 96, 128);
  return report();
}
