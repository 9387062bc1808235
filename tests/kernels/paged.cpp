#include <weft/kernels/paged.hpp>

#include <algorithm>
#include <limits>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
// sequences of these lengths, their pages in any order in the pool
struct batch {
  std::vector<i32> cu, table, sequence, position;
  size_t pages = 0, width = 0;
  batch(std::vector<size_t> const& lengths, u64 seed) : cu{0} {
    for (size_t l : lengths) width = std::max(width, (l + page_tokens - 1) / page_tokens), cu.push_back(cu.back() + i32(l));
    for (size_t s = 0; s < lengths.size(); ++s)
      for (size_t b = 0; b < width; ++b) table.push_back(b * page_tokens < lengths[s] ? i32(pages++) : -1);
    std::vector<i32> place(pages);
    for (size_t i = 0; i < pages; ++i) place[i] = i32(i);
    auto const r = help::integers(pages + 1, seed, 1u << 30);
    for (size_t i = pages; i > 1; --i) std::swap(place[i - 1], place[size_t(r[i]) % i]);
    for (i32& page : table)
      if (page >= 0) page = place[size_t(page)];
    for (size_t s = 0; s < lengths.size(); ++s)
      for (size_t t = 0; t < lengths[s]; ++t) sequence.push_back(i32(s)), position.push_back(i32(t));
  }
  size_t tokens() const { return position.size(); }
};
template <class Kv> std::vector<Kv> make_pool(batch const& b, size_t layers, size_t kv_heads, size_t head_dim) {
  std::vector<Kv> pool(b.pages * page_elements<Kv>(layers, kv_heads, head_dim));
  std::memset(static_cast<void*>(pool.data()), 0xff, pool.size() * sizeof(Kv));  // NaN: what nobody wrote must not be read
  return pool;
}
}  // namespace

TEST_CASE_TEMPLATE("attention_paged has the bits of attention, for any page table, rows in any number and order, on every pool", T, float,
                   double) {
  size_t const heads = 6, kv_heads = 2, head_dim = 24, layers = 3, layer = 1;
  std::vector<size_t> const lengths{1, 64, 65, 200, 17};
  T const scale = T(0.2);
  for (u64 seed : {1, 2}) {
    batch const b(lengths, seed);
    auto const q = help::values<T>(b.tokens() * heads * head_dim, 3), k = help::values<T>(b.tokens() * kv_heads * head_dim, 4),
               v = help::values<T>(b.tokens() * kv_heads * head_dim, 5);
    std::vector<T> expected(q.size());
    cpu_context alone;
    attention(alone, lengths.size(), b.cu.data(), heads, kv_heads, head_dim, scale, q.data(), k.data(), v.data(), expected.data(),
              static_cast<T*>(nullptr));
    help::on_every_pool([&](cpu_context& on) {
      auto data = make_pool<T>(b, layers, kv_heads, head_dim);
      paged_pool<T> const pool{data.data(), layers, kv_heads, head_dim, b.table.data(), b.width};
      paged_write(on, pool, layer, b.tokens(), b.sequence.data(), b.position.data(), k.data(), v.data());
      std::vector<T> out(q.size());
      attention_paged(on, pool, layer, b.tokens(), b.sequence.data(), b.position.data(), heads, scale, q.data(), out.data());
      CHECK(help::same_bits(out, expected));
      for (size_t rows : {1, 2, 7}) {  // rows taken from anywhere
        std::vector<i32> sequence, position;
        std::vector<T> some, right;
        for (size_t r = 0; r < rows; ++r) {
          size_t const t = (r * 101 + 13) % b.tokens(), row = heads * head_dim;
          sequence.push_back(b.sequence[t]), position.push_back(b.position[t]);
          some.insert(some.end(), q.begin() + long(t * row), q.begin() + long((t + 1) * row));
          right.insert(right.end(), expected.begin() + long(t * row), expected.begin() + long((t + 1) * row));
        }
        std::vector<T> got(some.size());
        attention_paged(on, pool, layer, rows, sequence.data(), position.data(), heads, scale, some.data(), got.data());
        CHECK(help::same_bits(got, right));
      }
    });
  }
}

TEST_CASE("keys and values in f8e4m3 stay near, and the same bits come from every pool") {
  size_t const heads = 4, kv_heads = 2, head_dim = 32;
  std::vector<size_t> const lengths{70, 130};
  batch const b(lengths, 1);
  auto const q = help::values<float>(b.tokens() * heads * head_dim, 3), k = help::values<float>(b.tokens() * kv_heads * head_dim, 4),
             v = help::values<float>(b.tokens() * kv_heads * head_dim, 5);
  std::vector<float> expected(q.size()), first;
  cpu_context alone;
  attention(alone, 2, b.cu.data(), heads, kv_heads, head_dim, 0.2f, q.data(), k.data(), v.data(), expected.data(),
            static_cast<float*>(nullptr));
  help::on_every_pool([&](cpu_context& on) {
    auto data = make_pool<f8e4m3>(b, 1, kv_heads, head_dim);
    paged_pool<f8e4m3> const pool{data.data(), 1, kv_heads, head_dim, b.table.data(), b.width};
    paged_write(on, pool, 0, b.tokens(), b.sequence.data(), b.position.data(), k.data(), v.data());
    std::vector<float> out(q.size());
    attention_paged(on, pool, 0, b.tokens(), b.sequence.data(), b.position.data(), heads, 0.2f, q.data(), out.data());
    if (first.empty()) first = out;
    CHECK(help::same_bits(out, first));
    CHECK(help::distance(out, expected) < 0.06);
    CHECK(help::distance(out, expected) > 1e-4);
  });
}

TEST_CASE("f8e4m3 pages of zero, denormal, infinite and NaN rows") {
  size_t const head_dim = 8;
  i32 const table[] = {0}, sequence[] = {0, 0, 0, 0, 0}, position[] = {0, 1, 2, 3, 4};
  std::vector<f8e4m3> data(page_elements<f8e4m3>(1, 1, head_dim));
  paged_pool<f8e4m3> const pool{data.data(), 1, 1, head_dim, table, 1};
  float const denormal = 1e-41f, huge = std::numeric_limits<float>::max();
  std::vector<float> rows(5 * head_dim);
  for (size_t d = 0; d < head_dim; ++d) rows[head_dim + d] = denormal, rows[2 * head_dim + d] = d % 2 ? huge : -huge;
  rows[3 * head_dim + 2] = HUGE_VALF;
  rows[4 * head_dim + 5] = std::nanf("");
  cpu_context on;
  paged_write(on, pool, 0, 5, sequence, position, rows.data(), rows.data());
  for (size_t p = 0; p < 5; ++p) {
    std::vector<float> got(head_dim);
    detail::read_rows(head_dim, 1, static_cast<f8e4m3 const*>(data.data()) + p * page_row_elements<f8e4m3>(head_dim), got.data());
    for (size_t d = 0; d < head_dim; ++d) {
      if (p == 0) CHECK(got[d] == 0);
      if (p == 1) CHECK(std::fabs(got[d] - denormal) < 1e-39f);
      if (p == 2) CHECK(got[d] == doctest::Approx(double(rows[p * head_dim + d])));
      if (p >= 3) CHECK(std::isnan(got[d]));
    }
  }
  std::vector<float> const q(5 * head_dim, 1.0f);  // a row that sees a broken key is broken, earlier rows are not
  std::vector<float> out(5 * head_dim);
  attention_paged(on, pool, 0, 2, sequence, position, 1, 1.0f, q.data(), out.data());
  for (size_t i = 0; i < 2 * head_dim; ++i) CHECK(std::isfinite(out[i]));
  attention_paged(on, pool, 0, 5, sequence, position, 1, 1.0f, q.data(), out.data());
  for (size_t i = 3 * head_dim; i < 5 * head_dim; ++i) CHECK(std::isnan(out[i]));
}

TEST_CASE("f8e4m3 conversions: all 256 values return, rounding is to nearest even and saturates") {
  for (u32 bits = 0; bits < 256; ++bits) {
    f8e4m3 const x{static_cast<std::uint8_t>(bits)};
    float const value = from_f8e4m3(x);
    if ((bits & 0x7f) == 0x7f) {
      CHECK(std::isnan(value));
      CHECK((to_f8e4m3(value).bits & 0x7f) == 0x7f);
      continue;
    }
    u32 const exponent = bits >> 3 & 15, mantissa = bits & 7;
    double const size = exponent ? std::ldexp(8 + mantissa, int(exponent) - 10) : std::ldexp(mantissa, -9);
    CHECK(double(value) == (bits & 0x80 ? -size : size));
    CHECK(to_f8e4m3(value).bits == bits);
    if ((bits & 0x7f) < 0x7e) {  // half way to the next: the even one; a little more or less: the nearer one
      f8e4m3 const next{static_cast<std::uint8_t>(bits + 1)};
      float const half = (value + from_f8e4m3(next)) / 2;
      CHECK(to_f8e4m3(half).bits == (bits & 1 ? bits + 1 : bits));
      CHECK(to_f8e4m3(std::nextafter(half, value)).bits == bits);
      CHECK(to_f8e4m3(std::nextafter(half, from_f8e4m3(next))).bits == bits + 1);
    }
  }
  for (float x : {448.0f, 463.0f, 464.0f, 500.0f, 1e30f, HUGE_VALF}) {
    CHECK(from_f8e4m3(to_f8e4m3(x)) == 448);
    CHECK(from_f8e4m3(to_f8e4m3(-x)) == -448);
  }
}
