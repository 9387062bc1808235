// The page pool and its tables against a plain model of them, under random orders of operations.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <weft/kv/copy_page.hpp>
#include <weft/kv/tables.hpp>

using namespace weft;

TEST_CASE("pages: taken once, shared, free again when the last reader is gone") {
  std::vector<i32> free(3, -7), readers(3, -7);
  kv::pages p{free.data(), readers.data(), 3};
  CHECK(p.free_count() == 3);
  CHECK(p.take() == 0);
  CHECK(p.take() == 1);
  p.share(0);
  CHECK(p.readers(0) == 2);
  p.release(0);
  CHECK(p.free_count() == 1);
  p.release(0);
  CHECK(p.free_count() == 2);
  CHECK(p.take() == 0);
  CHECK(p.take() == 2);
  CHECK(p.take() == -1);
  p.reset();
  CHECK(p.free_count() == 3);
}
TEST_CASE("pages for a number of tokens") {
  CHECK(kv::pages_for(0) == 0);
  CHECK(kv::pages_for(1) == 1);
  CHECK(kv::pages_for(64) == 1);
  CHECK(kv::pages_for(65) == 2);
}

TEST_CASE("tables keep to a plain model; every page is free or held; nothing is lost") {
  std::mt19937 random{2};
  for (size_t pages : {1, 2, 7, 30}) {
    size_t const sequences = 6, width = 5;
    std::vector<i32> ints(sequences * width + sequences + 2 * pages, 0x55555555);
    kv::tables t{ints.data(), ints.data() + sequences * width, sequences, width,
                 kv::pages{ints.data() + sequences * width + sequences, ints.data() + sequences * width + sequences + pages, pages}};
    std::vector<std::vector<i32>> model(sequences);
    for (int turn = 0; turn < 4000; ++turn) {
      size_t const a = random() % sequences, b = random() % sequences;
      switch (random() % 5) {
        case 0:
        case 1:
          if (model[a].size() < width) {
            std::set<i32> used;
            for (auto const& row : model) used.insert(row.begin(), row.end());
            bool const got = t.append(a);
            REQUIRE(got == (used.size() < pages));
            if (got) {
              i32 const page = t.page(a, model[a].size());
              REQUIRE(used.count(page) == 0);
              model[a].push_back(page);
            }
          }
          break;
        case 2:
          if (a != b && model[a].empty()) {
            size_t const n = random() % (model[b].size() + 1);
            t.share(a, b, n);
            model[a].assign(model[b].begin(), model[b].begin() + std::ptrdiff_t(n));
          }
          break;
        case 3:
          if (a != b && model[a].empty()) t.move(a, b), model[a].swap(model[b]);
          break;
        default:
          t.release(a), model[a].clear();
      }
      std::multiset<i32> held;
      for (size_t s = 0; s < sequences; ++s) {
        REQUIRE(t.held(s) == model[s].size());
        REQUIRE(t.room(s) == 64 * model[s].size());
        for (size_t k = 0; k < model[s].size(); ++k) {
          REQUIRE(t.page(s, k) == model[s][k]);
          REQUIRE((t.page(s, k) >= 0 && size_t(t.page(s, k)) < pages));
          held.insert(model[s][k]);
        }
      }
      std::set<i32> const distinct(held.begin(), held.end());
      REQUIRE(t.pool().free_count() + distinct.size() == pages);
      for (i32 page : distinct) REQUIRE(size_t(t.pool().readers(page)) == held.count(page));
    }
  }
}

TEST_CASE_TEMPLATE("a page is copied up to its tokens, in every layer and head, and nothing else is touched", Kv, float, f8e4m3) {
  kernels::cpu_context on;
  size_t const layers = 3, heads = 2, width = 5, row = kernels::page_row_elements<Kv>(width),
               page = kernels::page_elements<Kv>(layers, heads, width);
  for (size_t tokens : {0, 1, 37, 64}) {
    std::vector<Kv> data(4 * page);
    auto* const bytes = reinterpret_cast<unsigned char*>(data.data());
    std::mt19937 random{8};
    for (size_t i = 0; i < data.size() * sizeof(Kv); ++i) bytes[i] = static_cast<unsigned char>(random());
    std::vector<unsigned char> const before(bytes, bytes + data.size() * sizeof(Kv));
    kv::copy_page(on, kernels::paged_pool<Kv>{data.data(), layers, heads, width, nullptr, 0}, 3, 1, tokens);
    bool right = true;
    for (size_t i = 0; i < before.size(); ++i) {
      size_t const element = i / sizeof(Kv), token = element / row % 64;
      bool const copied = element / page == 1 && token < tokens;
      right = right && bytes[i] == before[copied ? i + 2 * page * sizeof(Kv) : i];
    }
    CHECK(right);
  }
}
