#include <weft/kernels/cpu/threads.hpp>

#include <chrono>
#include <thread>

#include "help.hpp"

using namespace weft;
using namespace weft::kernels;

TEST_CASE("parallel_for visits every index once, in ranges of at least the grain") {
  help::on_every_pool([](cpu_context& on) {
    for (size_t n : {0, 1, 2, 7, 64, 1000})
      for (size_t grain : {0, 1, 5, 64, 5000}) {
        std::vector<int> visits(n);
        std::atomic<size_t> small = 0;
        parallel_for(on, n, grain, [&](size_t begin, size_t end) {
          if (end - begin < grain && end != n) ++small;
          for (size_t i = begin; i < end; ++i) ++visits[i];
        });
        CHECK(visits == std::vector<int>(n, 1));
        CHECK(small == 0);
      }
  });
}

TEST_CASE("many short jobs in a row, with pauses in which the threads fall asleep") {
  threads pool(3);
  cpu_context on{&pool};
  std::vector<long> sum(100);
  for (int job = 0; job < 20000; ++job) {
    parallel_for(on, sum.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) sum[i] += job;
    });
    if (job % 5000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(sum == std::vector<long>(100, 20000L * 19999 / 2));
}

TEST_CASE("a loop inside a loop, and two callers of one pool, both finish") {
  threads pool(2);
  cpu_context on{&pool};
  auto const nested = [&] {
    std::atomic<size_t> count = 0;
    for (int repeat = 0; repeat < 200; ++repeat)
      parallel_for(on, 10, 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) parallel_for(on, 10, 1, [&](size_t b, size_t e) { count += e - b; });
      });
    return count.load();
  };
  size_t other = 0;
  std::thread second([&] { other = nested(); });
  size_t const mine = nested();
  second.join();
  CHECK(mine == 20000);
  CHECK(other == 20000);
}

TEST_CASE("a pool of 0 threads has as many as this process may use") {
  threads pool(0);
  CHECK(pool.size() == threads::available());
  CHECK(pool.size() >= 1);
}

TEST_CASE("a caller that has fallen asleep is woken by the last thread") {
  threads pool(2);
  cpu_context on{&pool};
  auto const caller = std::this_thread::get_id();
  std::atomic<int> done = 0;
  for (int job = 0; job < 10; ++job)
    parallel_for(on, 8, 1, [&](size_t, size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::this_thread::get_id() == caller ? 1 : 20));
      ++done;
    });
  CHECK(done == 80);
}
