#include <weft/kernels/gemm.hpp>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

namespace {
enum form { nt, nn, tn };
struct sizes {
  size_t m, n, k;
};

template <class T>
void product(cpu_context& on, form f, sizes s, T const* a, size_t lda, T const* b, size_t ldb, T* c, size_t ldc, bool accumulate) {
  if (f == nt) gemm_nt(on, s.m, s.n, s.k, a, lda, b, ldb, c, ldc, accumulate);
  if (f == nn) gemm_nn(on, s.m, s.n, s.k, a, lda, b, ldb, c, ldc, accumulate);
  if (f == tn) gemm_tn(on, s.m, s.n, s.k, a, lda, b, ldb, c, ldc, accumulate);
}
// one step of the chain that the contract names
template <class T> T step(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T> void check_chain(cpu_context& on, form f, sizes s, bool accumulate) {
  size_t const lda = (f == tn ? s.m : s.k) + 3, ldb = (f == nt ? s.k : s.n) + 5, ldc = s.n + 2;
  auto const a = help::values<T>((f == tn ? s.k : s.m) * lda + 1, 1), b = help::values<T>((f == nt ? s.n : s.k) * ldb + 1, 2);
  auto const before = help::values<T>(s.m * ldc + 1, 3);
  auto expected = before, c = before;
  for (size_t i = 0; i < s.m; ++i)
    for (size_t j = 0; j < s.n; ++j) {
      T sum = accumulate ? before[i * ldc + j] : T(0);
      for (size_t p = 0; p < s.k; ++p)
        sum = step(f == tn ? a[p * lda + i] : a[i * lda + p], f == nt ? b[j * ldb + p] : b[p * ldb + j], sum);
      expected[i * ldc + j] = sum;
    }
  product(on, f, s, a.data(), lda, b.data(), ldb, c.data(), ldc, accumulate);
  INFO("form ", int(f), " m ", s.m, " n ", s.n, " k ", s.k, " accumulate ", accumulate);
  CHECK(help::same_bits(c, expected));
}
sizes const shapes[] = {{1, 1, 1},     {1, 33, 7},   {2, 16, 64}, {3, 100, 17},  {5, 31, 300},  {7, 64, 513},  {12, 32, 256},
                        {13, 65, 257}, {24, 96, 31}, {40, 1, 40}, {64, 48, 128}, {65, 130, 9},  {1, 1000, 70}, {100, 40, 600},
                        {0, 5, 4},     {4, 0, 3},    {6, 7, 0},   {400, 20, 30}, {30, 1100, 20}};
}  // namespace

TEST_CASE("every product is one chain of fused multiply-adds along k, whatever the shape and the threads") {
  help::on_every_pool([](cpu_context& on) {
    for (form f : {nt, nn, tn})
      for (sizes s : shapes)
        for (bool accumulate : {false, true}) {
          check_chain<float>(on, f, s, accumulate);
          check_chain<double>(on, f, s, accumulate);
        }
  });
}

TEST_CASE("a row of a product has the same bits in a batch of any size, at any place") {
  threads pool(2);
  cpu_context on{&pool};
  size_t const rows = 70, n = 75, k = 391;
  auto const a = help::values<float>(rows * k, 1), b = help::values<float>(n * k, 2);
  std::vector<float> all(rows * n);
  gemm_nt(on, rows, n, k, a.data(), k, b.data(), k, all.data(), n, false);
  for (size_t m = 1; m <= 64; ++m) {
    std::vector<float> part(m * n);
    size_t const first = m * 7 % (rows - m + 1);
    gemm_nt(on, m, n, k, a.data() + first * k, k, b.data(), k, part.data(), n, false);
    CHECK(std::memcmp(part.data(), all.data() + first * n, part.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("a sum over k may be cut into calls that accumulate") {
  cpu_context on;
  size_t const m = 20, n = 50, k = 300;
  auto const a = help::values<float>(k * m, 1), b = help::values<float>(k * n, 2);
  std::vector<float> whole(m * n), parts(m * n);
  gemm_tn(on, m, n, k, a.data(), m, b.data(), n, whole.data(), n, false);
  for (size_t p = 0; p < k; p += 37)
    gemm_tn(on, m, n, k - p < 37 ? k - p : 37, a.data() + p * m, m, b.data() + p * n, n, parts.data(), n, p > 0);
  CHECK(help::same_bits(whole, parts));
}

TEST_CASE("NaN and infinity reach exactly the outputs that read them") {
  cpu_context on;
  size_t const m = 14, n = 40, k = 20;
  auto a = help::values<float>(m * k, 1), b = help::values<float>(n * k, 2);
  a[3 * k + 5] = HUGE_VALF, b[37 * k + 2] = std::nanf("");
  std::vector<float> c(m * n);
  gemm_nt(on, m, n, k, a.data(), k, b.data(), k, c.data(), n, false);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) CHECK(std::isfinite(c[i * n + j]) == (i != 3 && j != 37));
}
