#include <weft/kernels/attention.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
struct problem {
  std::vector<i32> cu_seqlens;
  size_t heads, kv_heads, head_dim;
  size_t sequences() const { return cu_seqlens.size() - 1; }
  size_t tokens() const { return static_cast<size_t>(cu_seqlens.back()); }
  size_t queries() const { return tokens() * heads * head_dim; }
  size_t keys() const { return tokens() * kv_heads * head_dim; }
};
problem const problems[] = {{{0, 1}, 1, 1, 2},   {{0, 3, 70, 70, 71, 200}, 4, 2, 16},
                            {{0, 130}, 3, 3, 8}, {{0, 64, 129}, 6, 1, 64},
                            {{0, 33}, 2, 2, 80}, {{0, 300}, 7, 1, 6},
                            {{0, 20}, 2, 1, 256}};

template <class T> void reference(problem const& p, double scale, T const* q, T const* k, T const* v, double* out, double* lse) {
  for (size_t s = 0; s < p.sequences(); ++s)
    for (size_t t = size_t(p.cu_seqlens[s]); t < size_t(p.cu_seqlens[s + 1]); ++t)
      for (size_t h = 0; h < p.heads; ++h) {
        size_t const kv = h / (p.heads / p.kv_heads), row = (t * p.heads + h) * p.head_dim;
        std::vector<double> score;
        double max = -HUGE_VAL, sum = 0;
        for (size_t j = size_t(p.cu_seqlens[s]); j <= t; ++j) {
          double x = 0;
          for (size_t d = 0; d < p.head_dim; ++d) x += double(q[row + d]) * double(k[(j * p.kv_heads + kv) * p.head_dim + d]);
          score.push_back(x * scale);
          max = std::fmax(max, x * scale);
        }
        for (double& x : score) sum += x = std::exp(x - max);
        for (size_t d = 0; d < p.head_dim; ++d) {
          out[row + d] = 0;
          for (size_t j = 0; j < score.size(); ++j)
            out[row + d] += score[j] / sum * double(v[((size_t(p.cu_seqlens[s]) + j) * p.kv_heads + kv) * p.head_dim + d]);
        }
        lse[t * p.heads + h] = max + std::log(sum);
      }
}
template <class T> void check_forward(double tolerance) {
  for (problem const& p : problems) {
    cpu_context on;
    T const scale = static_cast<T>(1 / std::sqrt(double(p.head_dim)));
    auto const q = help::values<T>(p.queries(), 1, 2), k = help::values<T>(p.keys(), 2, 2), v = help::values<T>(p.keys(), 3);
    std::vector<T> out(q.size()), lse(p.tokens() * p.heads), unasked(q.size());
    std::vector<double> expected(q.size()), expected_lse(lse.size());
    attention(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, scale, q.data(), k.data(), v.data(), out.data(),
              lse.data());
    reference(p, double(scale), q.data(), k.data(), v.data(), expected.data(), expected_lse.data());
    CHECK(help::distance(out, expected) < tolerance);
    CHECK(help::distance(lse, expected_lse) < tolerance);
    attention(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, scale, q.data(), k.data(), v.data(), unasked.data(),
              static_cast<T*>(nullptr));
    CHECK(help::same_bits(out, unasked));
  }
}
}  // namespace

TEST_CASE("attention follows its formula") {
  check_forward<float>(2e-6);
  check_forward<double>(2e-14);
}

TEST_CASE("attention survives scores of any size, and passes a NaN on to the rows that see it only") {
  cpu_context on;
  i32 const cu[] = {0, 100};
  auto q = help::values<float>(100 * 8, 1, 1e4), k = help::values<float>(100 * 8, 2, 1e4), v = help::values<float>(100 * 8, 3);
  std::vector<float> out(q.size()), lse(100);
  attention(on, 1, cu, 1, 1, 8, 1.0f, q.data(), k.data(), v.data(), out.data(), lse.data());
  for (float x : out) CHECK(std::fabs(x) < 10);
  k[70 * 8 + 3] = std::nanf("");
  attention(on, 1, cu, 1, 1, 8, 1.0f, q.data(), k.data(), v.data(), out.data(), lse.data());
  for (size_t t = 0; t < 100; ++t) CHECK(std::isnan(out[t * 8]) == (t >= 70));
  v[40 * 8] = std::nanf("");
  attention(on, 1, cu, 1, 1, 8, 1e-9f, q.data(), k.data(), v.data(), out.data(), lse.data());
  for (size_t t = 0; t < 100; ++t) CHECK(std::isnan(out[t * 8]) == (t >= 40));
}

TEST_CASE("attention: a sequence has the same bits alone, packed behind others, and on every pool") {
  size_t const heads = 4, kv_heads = 2, head_dim = 32, tokens = 210;
  auto const q = help::values<float>(tokens * heads * head_dim, 1), k = help::values<float>(tokens * kv_heads * head_dim, 2),
             v = help::values<float>(tokens * kv_heads * head_dim, 3), dout = help::values<float>(tokens * heads * head_dim, 4);
  i32 const cu[] = {0, 50, 57, 199, 210};
  std::vector<float> first, first_dq, first_dk, first_dv;
  help::on_every_pool([&](cpu_context& on) {
    std::vector<float> out(q.size()), lse(tokens * heads), dq(q.size()), dk(k.size()), dv(k.size());
    attention(on, 4, cu, heads, kv_heads, head_dim, 0.2f, q.data(), k.data(), v.data(), out.data(), lse.data());
    attention_backward(on, 4, cu, heads, kv_heads, head_dim, 0.2f, q.data(), k.data(), v.data(), out.data(), lse.data(), dout.data(),
                       dq.data(), dk.data(), dv.data());
    if (first.empty()) first = out, first_dq = dq, first_dk = dk, first_dv = dv;
    CHECK(help::same_bits(out, first));
    CHECK(help::same_bits(dq, first_dq));
    CHECK(help::same_bits(dk, first_dk));
    CHECK(help::same_bits(dv, first_dv));
  });
  cpu_context on;
  size_t const begin = 57, length = 142, row = heads * head_dim, kv_row = kv_heads * head_dim;
  i32 const alone[] = {0, i32(length)};
  std::vector<float> out(length * row), lse(length * heads), dq(length * row), dk(length * kv_row), dv(length * kv_row);
  attention(on, 1, alone, heads, kv_heads, head_dim, 0.2f, &q[begin * row], &k[begin * kv_row], &v[begin * kv_row], out.data(), lse.data());
  attention_backward(on, 1, alone, heads, kv_heads, head_dim, 0.2f, &q[begin * row], &k[begin * kv_row], &v[begin * kv_row], out.data(),
                     lse.data(), &dout[begin * row], dq.data(), dk.data(), dv.data());
  CHECK(std::memcmp(out.data(), &first[begin * row], out.size() * 4) == 0);
  CHECK(std::memcmp(dq.data(), &first_dq[begin * row], dq.size() * 4) == 0);
  CHECK(std::memcmp(dk.data(), &first_dk[begin * kv_row], dk.size() * 4) == 0);
  CHECK(std::memcmp(dv.data(), &first_dv[begin * kv_row], dv.size() * 4) == 0);
}

TEST_CASE("attention_backward is the derivative of attention") {
  cpu_context on;
  for (problem const& p : {problem{{0, 1, 8}, 2, 1, 4}, problem{{0, 5, 71}, 2, 2, 2}, problem{{0, 9}, 3, 1, 18}}) {
    auto q = help::values<double>(p.queries(), 1), k = help::values<double>(p.keys(), 2), v = help::values<double>(p.keys(), 3);
    auto const dout = help::values<double>(p.queries(), 4);
    std::vector<double> out(q.size()), lse(p.tokens() * p.heads), dq(q.size(), 7), dk(k.size(), 7), dv(k.size(), 7);
    auto const loss = [&] {
      attention(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, 0.7, q.data(), k.data(), v.data(), out.data(),
                lse.data());
      return help::dot(out, dout);
    };
    loss();
    attention_backward(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, 0.7, q.data(), k.data(), v.data(),
                       out.data(), lse.data(), dout.data(), dq.data(), dk.data(), dv.data());
    CHECK(help::distance(dq, help::slopes(q, loss)) < 1e-8);
    CHECK(help::distance(dk, help::slopes(k, loss)) < 1e-8);
    CHECK(help::distance(dv, help::slopes(v, loss)) < 1e-8);
  }
}

TEST_CASE("attention_backward in float is near the one in double") {
  for (problem const& p : problems) {
    cpu_context on;
    auto const q = help::values<float>(p.queries(), 1), k = help::values<float>(p.keys(), 2), v = help::values<float>(p.keys(), 3),
               dout = help::values<float>(p.queries(), 4);
    auto const run = [&]<class T>(T scale, auto const& wide) {
      auto const Q = wide(q), K = wide(k), V = wide(v), D = wide(dout);
      std::vector<T> out(Q.size()), lse(p.tokens() * p.heads), d(Q.size() + 2 * K.size());
      attention(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, scale, Q.data(), K.data(), V.data(), out.data(),
                lse.data());
      attention_backward(on, p.sequences(), p.cu_seqlens.data(), p.heads, p.kv_heads, p.head_dim, scale, Q.data(), K.data(), V.data(),
                         out.data(), lse.data(), D.data(), d.data(), d.data() + Q.size(), d.data() + Q.size() + K.size());
      return d;
    };
    auto const narrow = run(0.25f, [](auto const& x) { return x; });
    auto const exact = run(0.25, [](auto const& x) { return help::wide(x); });
    CHECK(help::distance(narrow, exact) < 6e-6);
  }
}
