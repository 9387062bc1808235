// When samples end, what may be drawn, and that each sample keeps its own rules.
#include <string>

#include "lab.hpp"

using namespace weft;
using namespace lab;
using rollout::finish;

namespace {
struct strings {
  std::vector<i32> offsets{0};
  std::string bytes;
  explicit strings(std::vector<std::string> const& all) {
    for (auto const& s : all) bytes += s, offsets.push_back(i32(bytes.size()));
  }
  rollout::byte_strings view() const {
    return {offsets.data(), reinterpret_cast<unsigned char const*>(bytes.data()), i32(offsets.size()) - 1};
  }
};
// Token i of the tiny vocabulary: one, two, three or no bytes over a small alphabet.
std::string bytes_of(i32 id) {
  std::string s;
  for (i32 k = 0; k < id % 4; ++k) s += char('a' + (id / 4 + k) % 3);
  return s;
}
strings all_tokens(i32 count = 61) {
  std::vector<std::string> all;
  for (i32 i = 0; i < count; ++i) all.push_back(bytes_of(i));
  return strings{all};
}
template <class T>
std::vector<std::vector<T>> logits_of(tiny<T> const& m, job<T> const& j, result<T> const& r, size_t sample) {  // [length][vocab]
  kernels::cpu_context on;
  size_t const p = sample / size_t(j.group), length = size_t(j.lengths[p]), width = size_t(m.config.hidden), vocab = size_t(m.config.vocab);
  std::vector<i32> ids(j.ids.begin() + std::ptrdiff_t(p) * j.prompt_capacity,
                       j.ids.begin() + std::ptrdiff_t(p) * j.prompt_capacity + j.lengths[p]),
      positions;
  for (i32 id : r.response(sample)) ids.push_back(id);
  for (size_t k = 0; k < ids.size(); ++k) positions.push_back(i32(k));
  std::vector<i32> const cu{0, i32(ids.size())};
  std::vector<T> room(model::activation_count(m.config, ids.size(), false)), hidden(ids.size() * width);
  model::forward(on, m.config, false, m.rope.data(), m.weights.data(), model::batch_view{ids.data(), positions.data(), cu.data(), cu[1], 1},
                 room.data(), hidden.data());
  std::vector<std::vector<T>> out;
  for (size_t k = length - 1; k + 1 < ids.size(); ++k) {
    out.emplace_back(vocab);
    kernels::gemm_nt(on, 1, vocab, width, hidden.data() + k * width, width, model::head_weight(m.config, m.weights.data()), width,
                     out.back().data(), vocab, false);
  }
  return out;
}
}  // namespace

TEST_CASE("a stop string is found wherever it ends within the last token, and nowhere else") {
  std::mt19937 random{4};
  strings const tokens = all_tokens();
  for (int turn = 0; turn < 3000; ++turn) {
    std::string wanted;
    for (size_t n = 1 + random() % 5; n-- > 0;) wanted += char('a' + random() % 3);
    strings const stop{{wanted}};
    std::vector<i32> ids;
    std::string text;
    for (size_t n = 1 + random() % 8; n-- > 0;) ids.push_back(i32(random() % 64));  // 61..63 lie beyond the table: no bytes
    size_t last = 0;
    for (i32 id : ids) last = id < 61 ? bytes_of(id).size() : 0, text += id < 61 ? bytes_of(id) : "";
    bool found = false;
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
      found |= at + wanted.size() > text.size() - last;
    REQUIRE(rollout::completes(stop.view(), 0, tokens.view(), ids.data(), ids.size()) == found);
  }
}

TEST_CASE("samples end by the stop id that came first, by a stop string or by length") {
  tiny<float> const m;
  job<float> j{6, 8, {1, 30, 64, 70}};
  j.stop_ids = {40, 41, 7};
  j.sampling[0].max_new_tokens = 6;
  strings const tokens = all_tokens(), stop{{"abc", "ccaab"}};
  j.tokens = tokens.view(), j.strings = stop.view();
  result<float> const r = run<float>(m, j, settings_for(7, 9, 30));
  CHECK(exact(m, j, r));
  std::vector<int> seen(32);
  for (size_t i = 0; i < 48; ++i) {
    std::vector<i32> const ids = r.response(i);
    REQUIRE(!ids.empty());
    finish expected = finish::running;
    size_t length = 0;
    for (std::string text; expected == finish::running;) {  // token by token, on the text
      text += bytes_of(ids.at(length++));
      auto const which = std::find(j.stop_ids.begin(), j.stop_ids.end(), ids[length - 1]);
      if (which != j.stop_ids.end()) expected = rollout::finish_by_stop_id(size_t(which - j.stop_ids.begin()));
      else if (text.find("abc") != std::string::npos || text.find("ccaab") != std::string::npos) expected = finish::stop_string;
      else if (length == 6) expected = finish::length;
    }
    CHECK(length == ids.size());
    CHECK(r.reasons[i] == expected);
    ++seen[size_t(expected)];
    for (size_t k = length; k < 40; ++k) {
      size_t const at = i * 40 + k;
      CHECK((r.ids[at] == 0 && r.log_probs[at] == 0 && r.log_kept[at] == 0 && r.entropies[at] == 0));
    }
  }
  CHECK(seen[size_t(finish::length)] > 0);
  CHECK(seen[size_t(finish::stop_string)] > 0);
  for (size_t k = 0; k < 3; ++k) CHECK(seen[size_t(rollout::finish_by_stop_id(k))] > 0);
}

TEST_CASE("least and most tokens, for each sample") {
  tiny<float> const m;
  job<float> j{5, 4, {1, 64, 90}};
  j.stop_ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  j.sampling.assign(20, {});
  for (i32 i = 0; i < 20; ++i)
    j.sampling[size_t(i)].min_new_tokens = i % 7, j.sampling[size_t(i)].max_new_tokens = i % 7 + i % 3 + (i % 7 == 0);
  result<float> const r = run<float>(m, j, settings_for(4, 5, 16));
  CHECK(exact(m, j, r));
  for (size_t i = 0; i < 20; ++i) {
    auto const& how = j.sampling[i];
    CHECK(r.lengths[i] >= how.min_new_tokens);
    if (how.max_new_tokens) CHECK(r.lengths[i] <= how.max_new_tokens);
    std::vector<i32> const ids = r.response(i);
    for (size_t k = 0; k < ids.size(); ++k) {
      CHECK((ids[k] >= 20 || k + 1 == ids.size()));
      if (ids[k] < 20) CHECK(i32(k) >= how.min_new_tokens);
      if (i32(k) >= how.min_new_tokens) CHECK(r.log_kept[i * 40 + k] == 0);
      else CHECK(r.log_kept[i * 40 + k] < 0);  // mass was forbidden
    }
    CHECK((rollout::is_stop_id(r.reasons[i]) || r.lengths[i] == how.max_new_tokens));
  }
  job<float> none = j;  // a stop string waits for the least length too
  none.stop_ids.clear();
  none.sampling = {{}};
  none.sampling[0].min_new_tokens = 10;
  strings const tokens = all_tokens(), stop{{"a", "b", "c"}};
  none.tokens = tokens.view(), none.strings = stop.view();
  auto const waited = run<float>(m, none, settings_for(4, 5, 16)).lengths;
  CHECK(*std::min_element(waited.begin(), waited.end()) == 10);
  CHECK(*std::max_element(waited.begin(), waited.end()) < 40);
}

TEST_CASE("temperature, top-k, top-p and min-p of each sample are honoured in one batch") {
  tiny<double> const m;
  job<double> j{4, 6, {5, 64, 33, 100}};
  j.sampling.assign(24, {});
  for (size_t i = 0; i < 24; ++i) {
    auto& how = j.sampling[i];
    how.temperature = 0.5f + 0.1f * f32(i % 7);
    if (i % 2) how.top_k = i32(1 + i % 9);
    if (i % 3 == 0) how.top_p = 0.5f + 0.02f * f32(i);
    if (i % 5 == 0) how.min_p = 0.05f;
    how.max_new_tokens = i32(10 + i);
  }
  j.sampled_ids = 59;  // the last two are beyond the tokenizer
  result<double> const r = run<double>(m, j, settings_for(5, 6, 40));
  CHECK(exact(m, j, r));
  for (size_t i = 0; i < 24; ++i) {
    auto const& how = j.sampling[i];
    auto const logits = logits_of(m, j, r, i);
    CHECK(logits.size() == 10 + i);
    for (size_t k = 0; k < logits.size(); ++k) {
      size_t const id = size_t(r.ids[i * 40 + k]);
      std::vector<double> p(61);
      double all = 0;
      for (size_t v = 0; v < 61; ++v) all += p[v] = std::exp(logits[k][v] / double(how.temperature));
      for (double& x : p) x /= all;
      std::vector<size_t> best(59);
      std::iota(best.begin(), best.end(), size_t{});
      std::stable_sort(best.begin(), best.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
      if (how.top_k > 0) best.resize(size_t(how.top_k));
      double whole = 0, mass = 0, kept = 0;
      for (size_t v : best) whole += p[v];
      bool inside = false;
      for (size_t v : best) {
        if (how.top_p < 1 && mass >= double(how.top_p) * whole) break;
        mass += p[v];
        if (p[v] < double(how.min_p) * p[best[0]]) break;
        kept += p[v], inside = inside || v == id;
      }
      CHECK(inside);
      CHECK(r.log_kept[i * 40 + k] == doctest::Approx(std::log(kept)).epsilon(1e-6));
      CHECK(r.log_probs[i * 40 + k] == doctest::Approx(std::log(p[id])).epsilon(1e-9));
    }
  }
}

TEST_CASE("parameters given once, for each prompt or for each sample mean the same") {
  tiny<float> const m;
  job<float> once{3, 2, {4}};
  once.sampling[0].top_k = 5, once.sampling[0].temperature = 0.8f;
  job<float> prompts = once, samples = once;
  prompts.sampling.assign(3, once.sampling[0]), samples.sampling.assign(6, once.sampling[0]);
  result<float> const r = run<float>(m, once, settings_for(3, 9));
  CHECK(same(r, run<float>(m, prompts, settings_for(3, 9))));
  CHECK(same(r, run<float>(m, samples, settings_for(3, 9))));
  prompts.sampling[1].top_k = 1;  // of prompt 1 alone
  result<float> const other = run<float>(m, prompts, settings_for(3, 9));
  for (size_t i = 0; i < 6; ++i) CHECK((other.response(i) == r.response(i)) == (i / 2 != 1));
}

TEST_CASE("logit bias moves the draw, not the recorded log-prob") {
  tiny<float> const m;
  job<float> j{2, 3, {9, 64}};
  j.bias_ids = {11, 12}, j.bias = {500, -500};
  result<float> const r = run<float>(m, j, settings_for(4, 9));
  CHECK(exact(m, j, r));
  for (size_t i = 0; i < 6; ++i)
    for (i32 id : r.response(i)) CHECK(id == 11);
  j.bias = {-HUGE_VALF, 2};
  result<float> const never = run<float>(m, j, settings_for(4, 9));
  CHECK(exact(m, j, never));
  CHECK(std::find(never.ids.begin(), never.ids.end(), 11) == never.ids.end());
}
