// The log-prob recorded while sampling is the log-prob of the training forward, bit for bit, and a sample does not depend on what runs beside it.
#include "lab.hpp"

using namespace weft;
using namespace lab;

namespace {
std::vector<i32> const mixed{1, 5, 63, 64, 65, 128, 20, 130, 2};
kernels::sampling warm(f32 temperature = 1) {
  kernels::sampling s;
  s.temperature = temperature;
  return s;
}
template <class T> job<T> mixed_job(i32 prompts, i32 group) {
  job<T> j{prompts, group, mixed};
  j.sampling = {warm(0.7f)};
  j.stop_ids = {3, 17};
  return j;
}
}  // namespace

TEST_CASE_TEMPLATE("recorded log-probs are the training forward's, for any settings", T, float, double) {
  tiny<T> const m;
  job<T> const j = mixed_job<T>(9, 3);
  result<T> const first = run<T>(m, j, settings_for(8, 200));
  for (size_t packed : {1, 2, 27}) CHECK(exact(m, j, first, packed, packed == 2 ? 1 : 64));
  CHECK(*std::max_element(first.lengths.begin(), first.lengths.end()) > 20);
  CHECK(first.count.preemptions == 0);

  u64 preemptions = 0;
  i32 const least = 3;  // 130 + 40 - 1 positions
  for (i32 slots : {1, 3, 8, 64})
    for (i32 pages : {least, 4, 5, 9, 40, 200})
      for (i32 budget : {1, 7, 64, 512}) {
        if (sizeof(T) == 8 && budget == 7) continue;
        result<T> const r =
            run<T>(m, j, settings_for(slots, pages, budget, 200, slots % 3 + 1), slots == 8 ? 3 : 1, budget == 7 ? 0x7f : 0xff);
        INFO("slots ", slots, ", pages ", pages, ", budget ", budget);
        CHECK(same(r, first));
        CHECK(r.count.started == r.count.finished);
        CHECK(r.count.started == 27);
        preemptions += r.count.preemptions;
      }
  CHECK(preemptions > 50);
}

TEST_CASE("batches of 1 to 64 samples") {
  tiny<float> const m{5};
  for (i32 n : {1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 48, 63, 64}) {
    job<float> const j = mixed_job<float>(n, 1);
    result<float> const r = run<float>(m, j, settings_for(64, 300, 100));
    CHECK(exact(m, j, r, 7));
    job<float> const shared = [&] {
      auto s = mixed_job<float>(1, n);
      return s;
    }();
    CHECK(exact(m, shared, run<float>(m, shared, settings_for(64, 300, 100)), 7));
  }
}

TEST_CASE("a sample is the same in any batch") {
  tiny<float> const m;
  job<float> const all = mixed_job<float>(9, 4);
  result<float> const r = run<float>(m, all, settings_for(6, 12, 33));
  for (size_t p = 0; p < 9; ++p) {
    job<float> alone = all;
    alone.prompts = 1, alone.group = 2;
    alone.ids.assign(all.ids.begin() + std::ptrdiff_t(p) * all.prompt_capacity,
                     all.ids.begin() + std::ptrdiff_t(p + 1) * all.prompt_capacity);
    alone.lengths = {all.lengths[p]}, alone.draws = {all.draws[p]};
    result<float> const one = run<float>(m, alone, settings_for(2, 6));
    for (size_t g = 0; g < 2; ++g) CHECK(one.response(g) == r.response(p * 4 + g));
  }
}

TEST_CASE("draw number, sample index and seed each give another sample; the same ones the same") {
  tiny<float> const m;
  job<float> j{2, 2, {10}};
  std::copy_n(j.ids.begin(), j.prompt_capacity, j.ids.begin() + j.prompt_capacity);  // the same prompt twice
  result<float> const r = run<float>(m, j, settings_for(4, 20));
  CHECK(r.response(0) != r.response(1));
  CHECK(r.response(0) != r.response(2));
  j.draws[1] = j.draws[0];
  result<float> const twin = run<float>(m, j, settings_for(4, 20));
  CHECK(twin.response(0) == twin.response(2));
  CHECK(twin.response(1) == twin.response(3));
  j.seed += u64{1} << 40;
  CHECK(run<float>(m, j, settings_for(4, 20)).response(0) != twin.response(0));
}

TEST_CASE("the comparison sees the order of a sum") {
  tiny<float> const m;
  job<float> const j = mixed_job<float>(9, 1);
  result<float> const r = run<float>(m, j, settings_for(8, 200));
  judged<float> const other = judge(m, j, r, 3, 16, true);  // the head's products summed from the other end
  CHECK_FALSE(same_bits(other.log_probs, r.log_probs));
  for (size_t i = 0; i < r.log_probs.size(); ++i) CHECK(other.log_probs[i] == doctest::Approx(r.log_probs[i]).epsilon(1e-4));
}

TEST_CASE("weights with a tied head, biases and query norms") {
  model::config c = tiny_config();
  c.tied = c.qkv_bias = c.o_bias = c.mlp_bias = c.qk_norm = true, c.kv_heads = 4;
  tiny<float> const m{2, c};
  job<float> const j = mixed_job<float>(5, 2);
  CHECK(exact(m, j, run<float>(m, j, settings_for(3, 5, 17))));
}

TEST_CASE("greedy: temperature 0 takes the best logit and records the log-prob under temperature 1") {
  tiny<float> const m;
  job<float> j{4, 1, {7, 64, 30, 1}};
  j.sampling = {warm(0)};
  result<float> const r = run<float>(m, j, settings_for(2, 9));
  CHECK(exact(m, j, r));
  job<float> other = j;
  other.seed = 12345;
  CHECK(same(r, run<float>(m, other, settings_for(4, 30))));
  CHECK(std::all_of(r.log_kept.begin(), r.log_kept.end(), [](float x) { return x == 0; }));
}

TEST_CASE("FP8 pages: the same bits for any settings, close to the training forward, and the log-probs of their own forward") {
  tiny<float> const m;
  job<float> const j = mixed_job<float>(9, 3);
  result<float> const first = run<f8e4m3>(m, j, settings_for(8, 200));
  for (i32 slots : {1, 3, 64})
    for (i32 pages : {3, 5, 40}) CHECK(same(run<f8e4m3>(m, j, settings_for(slots, pages, slots == 3 ? 9 : 64), 2), first));

  judged<float> const training = judge(m, j, first, 4, 16);
  double sum = 0, most = 0, tokens = 0;
  for (size_t i = 0; i < first.lengths.size(); ++i)
    for (size_t k = 0; k < size_t(first.lengths[i]); ++k, ++tokens) {
      double const off = std::abs(double(first.log_probs[i * 40 + k]) - double(training.log_probs[i * 40 + k]));
      sum += off, most = std::max(most, off);
    }
  MESSAGE("FP8 KV: mean |log-prob difference| ", sum / tokens, ", most ", most);
  CHECK(sum / tokens < 0.15);
  CHECK(most < 2);
  CHECK(sum > 0);

  // Its own forward: every token alone, one after the other, over FP8 pages.
  kernels::cpu_context on;
  size_t const width = 32, vocab = 61, page = kernels::page_elements<f8e4m3>(2, 2, 8);
  std::vector<f8e4m3> pool(4 * page);
  std::vector<float> work(model::paged_workspace_count(m.config, 1)), hidden(width), logits(vocab);
  std::vector<i32> const table{2, 0, 3, 1};
  kernels::paged_pool<f8e4m3> const pages{pool.data(), 2, 2, 8, table.data(), 4};
  for (size_t i : {0, 4, 8, 13, 20, 22}) {
    size_t const p = i / 3, length = size_t(j.lengths[p]);
    for (i32 k = 0; k < i32(length) + first.lengths[i] - 1; ++k) {
      i32 const sequence = 0, id = size_t(k) < length ? j.ids[p * 160 + size_t(k)] : first.ids[i * 40 + size_t(k) - length];
      model::forward_paged<float, f8e4m3>(on, m.config, m.rope.data(), m.weights.data(), 1, &id, &k, &sequence, pages, work.data(),
                                          hidden.data());
      if (size_t(k) + 1 < length) continue;
      size_t const at = i * 40 + size_t(k) + 1 - length;
      float const inverse = kernels::inverse_temperature_of<float>(j.sampling[0]);
      float log_prob, entropy;
      kernels::head_log_probs(on, 1, width, vocab, hidden.data(), model::head_weight(m.config, m.weights.data()), &first.ids[at], &inverse,
                              1, logits.data(), &log_prob, &entropy);
      CHECK(log_prob == first.log_probs[at]);
      CHECK(entropy == first.entropies[at]);
    }
  }
}
