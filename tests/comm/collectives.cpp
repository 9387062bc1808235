// collectives.cpp — every collective against its definition, in process and over Gloo; errors name rank, collective and number.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "ranks.hpp"

using namespace ranks;

namespace {
float value(size_t rank, size_t i) { return 0.1f * static_cast<float>((rank * 7919 + i * 104729) % 1000) - 31.7f; }
std::vector<float> values(size_t rank, size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = value(rank, i);
  return x;
}
size_t at(int rank) { return static_cast<size_t>(rank); }
void none_threw(std::vector<std::string> const& said) {
  for (auto const& e : said) CHECK(e == "");
}

// Everything that a rank can say; doctest's CHECK may be used from many threads, but is slow: mistakes are counted.
void all_collectives(communicator& c, size_t n) {
  size_t const me = at(c.rank()), size = at(c.size());
  size_t wrong = 0;
  auto const expect = [&](bool holds) { wrong += !holds; };

  std::vector<double> exact(n);
  for (size_t r = 0; r < size; ++r)
    for (size_t i = 0; i < n; ++i) exact[i] += double(value(r, i));
  auto x = values(me, n);
  c.all_reduce(std::span(x));
  for (size_t i = 0; i < n; ++i) expect(std::abs(double(x[i]) - exact[i]) < 1e-5 * 100 * double(size));

  std::vector<std::int64_t> least{std::int64_t(me) - 5, -std::int64_t(me)};
  c.all_reduce(std::span(least), operation::min);
  expect(least == std::vector<std::int64_t>{-5, 1 - std::int64_t(size)});
  std::vector<std::uint64_t> most{me, std::uint64_t(1) << 63};
  c.all_reduce(std::span(most), operation::max);
  expect(most == std::vector<std::uint64_t>{size - 1, std::uint64_t(1) << 63});

  std::vector<float> all(n * size, -1);
  for (size_t i = 0; i < n; ++i) all[me * n + i] = value(me, i);
  c.all_gather(std::span(all));
  for (size_t r = 0; r < size; ++r)
    for (size_t i = 0; i < n; ++i) expect(all[r * n + i] == value(r, i));

  std::vector<std::int32_t> counts(n * size);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = std::int32_t(i + 1) * std::int32_t(me + 1);
  c.reduce_scatter(std::span(counts));
  for (size_t i = me * n; i < (me + 1) * n; ++i) expect(counts[i] == std::int32_t(i + 1) * std::int32_t(size * (size + 1) / 2));

  for (size_t root = 0; root < size; root += size > 2 ? size - 1 : 1) {
    auto y = values(me + 100, n);
    c.broadcast(std::span(y), int(root));
    expect(y == values(root + 100, n));
  }

  std::vector<std::uint16_t> from(n * size), to(n * size);
  for (size_t i = 0; i < from.size(); ++i) from[i] = std::uint16_t(me * 1000 + i);
  c.all_to_all(std::span<std::uint16_t const>(from), std::span(to));
  for (size_t r = 0; r < size; ++r)
    for (size_t i = 0; i < n; ++i) expect(to[r * n + i] == std::uint16_t(r * 1000 + me * n + i));

  if (size > 1) {  // round the ring; even ranks send first
    auto const mine = values(me, n);
    std::vector<float> got(n);
    int const next = int((me + 1) % size), before = int((me + size - 1) % size);
    if (me % 2 == 0) c.send(std::span(mine), next);
    c.receive(std::span(got), before);
    if (me % 2 == 1) c.send(std::span(mine), next);
    expect(got == values(at(before), n));
  }
  if (size > 2) {  // messages between two ranks do not disturb what all do next
    std::vector<float> got(n);
    auto const sent = values(0, n);
    if (me == 0) c.send(std::span(sent), 1);
    if (me == 1) c.receive(std::span(got), 0);
    expect(me != 1 || got == sent);
    std::vector<std::int32_t> ones{1};
    c.all_reduce(std::span(ones));
    expect(ones[0] == std::int32_t(size));
  }
  c.barrier();
  CHECK(wrong == 0);
}

// Gradients of 16 leaves, held by `size` ranks and added up in the tree: the bits that come out.
std::vector<float> sum_of_leaves(int size, std::function<maker(int)> const& group, size_t n) {
  std::vector<float> result;
  size_t const each = 16 / at(size);
  none_threw(errors(size, group(size), [&](communicator& c) {
    std::vector<std::vector<float>> leaves;
    std::vector<void const*> from;
    for (size_t k = 0; k < each; ++k) leaves.push_back(values(at(c.rank()) * each + k, n));
    for (auto const& l : leaves) from.push_back(l.data());
    std::vector<float> x(n);
    tree_reduce({number::f32, operation::sum}, from, x.data(), n);
    c.all_reduce(std::span(x));
    if (c.rank() == c.size() - 1) result = x;
  }));
  return result;
}
}  // namespace

TEST_CASE("every collective, in process, 1 to 64 ranks") {
  for (int size : {1, 2, 3, 4, 7, 16, 64})
    for (size_t n : {size_t(0), size_t(1), size_t(5), size_t(700)}) {
      CAPTURE(size);
      CAPTURE(n);
      none_threw(errors(size, in_process(size), [&](communicator& c) { all_collectives(c, n); }));
    }
}

TEST_CASE("sums in the tree's order do not depend on the number of ranks") {
  size_t const n = 1000;
  auto const one = sum_of_leaves(1, [](int s) { return in_process(s); }, n);
  REQUIRE(one.size() == n);
  for (int size : {2, 4, 8, 16}) CHECK(sum_of_leaves(size, [](int s) { return in_process(s); }, n) == one);
  auto x = values(0, n);  // one after the other is another order, with other bits
  for (size_t k = 1; k < 16; ++k)
    for (size_t i = 0; i < n; ++i) x[i] += value(k, i);
  CHECK(x != one);
#ifdef WEFT_GLOO
  for (int size : {1, 2, 4}) CHECK(sum_of_leaves(size, [](int s) { return over_gloo(s, sum_order::fixed_tree); }, n) == one);
#endif
}

#ifdef WEFT_GLOO
TEST_CASE("every collective, over Gloo") {
  for (auto order : {sum_order::fastest, sum_order::fixed_tree})
    for (int size : {1, 2, 3, 4})
      for (size_t n : {size_t(0), size_t(1), size_t(700), size_t(300'000)}) {
        CAPTURE(size);
        CAPTURE(n);
        none_threw(errors(size, over_gloo(size, order), [&](communicator& c) { all_collectives(c, n); }));
      }
}

TEST_CASE("over Gloo, a rank that does not come or left is an error at the deadline") {
  for (bool leaves : {false, true}) {
    auto const said = errors(3, over_gloo(3, sum_order::fastest, milliseconds(300)), [&](communicator& c) {
      c.barrier();
      if (c.rank() == 1) {
        if (!leaves) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        return;
      }
      std::vector<float> x(1000);
      c.all_reduce(std::span(x));
    });
    CHECK(said[0].starts_with("rank 0 of 3: all_reduce number 2: "));
    CHECK(said[2].starts_with("rank 2 of 3: all_reduce number 2: "));
  }
}
#endif

TEST_CASE("what ranks do wrong is named on every rank") {
  std::vector<float> const four(4);
  auto const said = [&](milliseconds timeout, body const& f) { return errors(3, in_process(3, timeout), f); };
  milliseconds const long_time(20'000);

  auto e = said(long_time, [&](communicator& c) {
    auto x = four;
    c.barrier();
    if (c.rank() == 1) c.broadcast(std::span(x), 2);
    else c.all_reduce(std::span(x));
  });
  for (size_t r = 0; r < 3; ++r) CHECK(e[r].find("rank " + std::to_string(r) + " of 3: ") == 0);
  for (size_t r = 0; r < 3; ++r) CHECK(e[r].find("number 2: rank ") != std::string::npos);
  for (size_t r = 0; r < 3; ++r) CHECK(e[r].find("broadcast of 16 bytes from rank 2") != std::string::npos);
  for (size_t r = 0; r < 3; ++r) CHECK(e[r].find("all_reduce of 16 bytes, f32 sum") != std::string::npos);

  e = said(long_time, [&](communicator& c) {
    if (c.rank() == 2) return;
    c.barrier();
  });
  CHECK(e[0] == "rank 0 of 3: barrier number 1: rank 2 left");
  CHECK(e[1] == "rank 1 of 3: barrier number 1: rank 2 left");

  e = said(milliseconds(50), [&](communicator& c) {
    if (c.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    else c.barrier();
  });
  CHECK(e[1] == "rank 1 of 3: barrier number 1: no answer from rank 0 in 50 ms");
  CHECK(e[2] == "rank 2 of 3: barrier number 1: no answer from rank 0 in 50 ms");

  e = said(long_time, [&](communicator& c) {
    std::vector<float> x(c.rank() == 0 ? 4 : 3);
    if (c.rank() == 0) c.send(std::span<float const>(x), 1);
    if (c.rank() == 1) c.receive(std::span(x), 0);
  });
  CHECK(e[1] == "rank 1 of 3: receive number 1: rank 0 sent 16 bytes where rank 1 takes 12");
}

TEST_CASE("arguments") {
  auto const c = self();
  std::vector<float> x(4);
  CHECK_THROWS_WITH(c->broadcast(std::span(x), 1), "rank 0 of 1: broadcast number 1: there is no rank 1");
  CHECK_THROWS_WITH(c->barrier(), "rank 0 of 1: barrier number 2: after an earlier error: there is no rank 1");
  auto const e = errors(2, in_process(2), [](communicator& k) {
    std::vector<float> three(3);
    k.all_gather(std::span(three));
  });
  CHECK(e[0] == "rank 0 of 2: all_gather number 1: 3 elements are no equal shares for 2 ranks: pad them");
  CHECK_THROWS_WITH(local_communicator(std::make_shared<local_group>(2), 2, milliseconds(1)), "rank 2 of 2: ranks are numbered from 0");
}
