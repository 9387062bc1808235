#include <weft/kernels/head.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
struct expected {
  double log_prob, entropy;
};
template <class T> expected reference(size_t vocab, T const* logits, size_t target, double it) {
  double max = -HUGE_VAL, sum = 0, entropy = 0;
  for (size_t i = 0; i < vocab; ++i) max = std::fmax(max, double(logits[i]) * it);
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(double(logits[i]) * it - max);
  for (size_t i = 0; i < vocab; ++i) {
    double const l = double(logits[i]) * it - max - std::log(sum);
    entropy -= std::exp(l) * l;
  }
  return {double(logits[target]) * it - max - std::log(sum), entropy};
}
}  // namespace

TEST_CASE_TEMPLATE("softmax_row: log-prob and entropy follow their formulas for any length", T, float, double) {
  double const tolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;
  for (size_t vocab : {1, 2, 15, 16, 17, 100, 1000, 32003})
    for (double it : {1.0, 0.3, 2.5}) {
      auto logits = help::values<T>(vocab, vocab, 4);
      logits[vocab / 2] = T(9);
      size_t const target = vocab / 3;
      auto const row = softmax_row(vocab, logits.data(), T(it));
      auto const want = reference(vocab, logits.data(), target, double(T(it)));
      CHECK(std::fabs(double(log_prob_of(row, logits[target], T(it))) - want.log_prob) <
            tolerance * std::fmax(1, std::fabs(want.log_prob)));
      CHECK(std::fabs(double(row.entropy) - want.entropy) < tolerance * std::fmax(1, want.entropy));
      CHECK(log_prob_of(row, logits[target], T(it)) <= 0);
    }
}

TEST_CASE("softmax_row of a row with one NaN or infinite logit has NaN entropy, wherever it is") {
  for (size_t vocab : {1, 5, 16, 37, 300})
    for (size_t at = 0; at < vocab; ++at)
      for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
        auto logits = help::values<float>(vocab, 1);
        logits[at] = bad;
        CHECK(std::isnan(softmax_row(vocab, logits.data(), 1.0f).entropy));
      }
}

TEST_CASE("softmax_row of equal logits, of one logit far above the others, of huge logits") {
  std::vector<float> logits(1000, 3.0f);
  CHECK(softmax_row(logits.size(), logits.data(), 1.0f).entropy == doctest::Approx(std::log(1000.0)).epsilon(1e-6));
  logits[77] = 1000;
  auto const row = softmax_row(logits.size(), logits.data(), 1.0f);
  CHECK(row.entropy == 0);
  CHECK(log_prob_of(row, logits[77], 1.0f) == 0);
  CHECK(log_prob_of(row, logits[76], 1.0f) == -997);
  for (float& x : logits) x = 3e38f;
  CHECK(softmax_row(logits.size(), logits.data(), 1.0f).log_sum == doctest::Approx(std::log(1000.0)).epsilon(1e-6));
}

TEST_CASE("head_log_probs and head_loss give the same bits for every chunk and pool, those of softmax_row on the logits") {
  size_t const rows = 150, width = 40, vocab = 301;
  auto const hidden = help::values<float>(rows * width, 1), weight = help::values<float>(vocab * width, 2, 0.3);
  auto const targets = help::integers(rows, 3, vocab);
  auto it = help::values<float>(rows, 4, 0.2);
  for (float& x : it) x += 1;
  std::vector<float> first_lp, first_entropy, first_dhidden, first_dweight;
  help::on_every_pool([&](cpu_context& on) {
    for (size_t chunk : {1, 7, 64, 100, 150, 1000}) {
      std::vector<float> logits(chunk * vocab), lp(rows), entropy(rows), lp2(rows), entropy2(rows), dhidden(rows * width),
          dweight(vocab * width, 0.25f);
      head_log_probs(on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), chunk, logits.data(), lp.data(),
                     entropy.data());
      size_t calls = 0;
      auto const loss = [&](size_t row, float log_prob, float h) {
        CHECK(row == calls++);
        return token_gradient<float>{log_prob - 0.1f, 0.3f * h};
      };
      head_loss(on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), chunk, logits.data(), loss, lp2.data(),
                entropy2.data(), dhidden.data(), dweight.data());
      CHECK(calls == rows);
      if (first_lp.empty()) first_lp = lp, first_entropy = entropy, first_dhidden = dhidden, first_dweight = dweight;
      CHECK(help::same_bits(lp, first_lp));
      CHECK(help::same_bits(entropy, first_entropy));
      CHECK(help::same_bits(lp2, first_lp));
      CHECK(help::same_bits(entropy2, first_entropy));
      CHECK(help::same_bits(dhidden, first_dhidden));
      CHECK(help::same_bits(dweight, first_dweight));
    }
  });
  cpu_context on;
  std::vector<float> logits(vocab);
  for (size_t r = 0; r < rows; ++r) {
    gemm_nt(on, 1, vocab, width, &hidden[r * width], width, weight.data(), width, logits.data(), vocab, false);
    CHECK(log_prob_of(softmax_row(vocab, logits.data(), it[r]), logits[size_t(targets[r])], it[r]) == first_lp[r]);
  }
}

TEST_CASE("head_loss: its gradients are the derivatives of a loss of log-prob and entropy") {
  cpu_context on;
  size_t const rows = 5, width = 4, vocab = 13, chunk = 2;
  auto hidden = help::values<double>(rows * width, 1), weight = help::values<double>(vocab * width, 2);
  auto const targets = help::integers(rows, 3, vocab);
  std::vector<double> const it{1, 0.5, 2, 1.3, 0.9};
  std::vector<double> logits(chunk * vocab), lp(rows), entropy(rows), dhidden(rows * width), dweight(vocab * width);
  auto const value = [&](size_t r) { return std::sin(lp[r]) * double(r + 1) + 0.7 * entropy[r] * entropy[r]; };
  auto const loss = [&] {
    head_log_probs(on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), chunk, logits.data(), lp.data(),
                   entropy.data());
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) sum += value(r);
    return sum;
  };
  head_loss(
      on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), chunk, logits.data(),
      [](size_t r, double log_prob, double h) {
        return token_gradient<double>{std::cos(log_prob) * double(r + 1), 1.4 * h};
      },
      lp.data(), entropy.data(), dhidden.data(), dweight.data());
  CHECK(help::distance(dhidden, help::slopes(hidden, loss)) < 1e-8);
  CHECK(help::distance(dweight, help::slopes(weight, loss)) < 1e-8);
}

TEST_CASE("a loss times 2^k gives gradients times 2^k, bit for bit") {
  cpu_context on;
  size_t const rows = 30, width = 20, vocab = 257;
  auto const hidden = help::values<float>(rows * width, 1), weight = help::values<float>(vocab * width, 2);
  auto const targets = help::integers(rows, 3, vocab);
  std::vector<float> const it(rows, 0.8f);
  auto const gradients = [&](float factor) {
    std::vector<float> logits(rows * vocab), lp(rows), entropy(rows), d(rows * width + vocab * width);
    head_loss(
        on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), rows, logits.data(),
        [&](size_t r, float, float) {
          return token_gradient<float>{factor * (0.3f + float(r)), -0.01f * factor};
        },
        lp.data(), entropy.data(), d.data(), d.data() + rows * width);
    return d;
  };
  auto const plain = gradients(1);
  for (int k : {-20, -1, 4, 16}) {
    auto const scaled = gradients(std::ldexp(1.0f, k));
    size_t different = 0;
    for (size_t i = 0; i < plain.size(); ++i) different += scaled[i] != std::ldexp(plain[i], k) && std::fabs(plain[i]) > 1e-25f;
    CHECK(different == 0);
  }
}

TEST_CASE("a row whose loss has no slope adds nothing, even a row of NaN logits") {
  cpu_context on;
  size_t const rows = 3, width = 5, vocab = 40;
  auto hidden = help::values<float>(rows * width, 1);
  auto const weight = help::values<float>(vocab * width, 2);
  std::vector<i32> const targets{1, 2, 3};
  std::vector<float> const it(rows, 1.0f);
  hidden[width + 2] = 3e38f;  // finite, but its logits are not
  std::vector<float> logits(rows * vocab), lp(rows), entropy(rows), dhidden(rows * width), dweight(vocab * width);
  head_loss(
      on, rows, width, vocab, hidden.data(), weight.data(), targets.data(), it.data(), rows, logits.data(),
      [](size_t, float log_prob, float) {
        return std::isnan(log_prob) ? token_gradient<float>{0, 0} : token_gradient<float>{1, 0.1f};
      },
      lp.data(), entropy.data(), dhidden.data(), dweight.data());
  CHECK(std::isnan(lp[1]));
  for (size_t i = 0; i < width; ++i) CHECK(dhidden[width + i] == 0);
  for (float x : dweight) CHECK(std::isfinite(x));
}
