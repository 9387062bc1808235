// comm.cpp — how long each collective takes: ranks as threads that share memory, and over Gloo (TCP on the loopback interface), as Gloo sums and in
// the fixed tree. Times are the slowest rank's, the best of many. Ranks share this machine's cores: with more of them than cores it is no
// picture of a cluster.
//   build/bench/comm [RANKS...]      2 and 4
#include <weft/comm/local.hpp>
#ifdef WEFT_GLOO
#include <gloo/rendezvous/hash_store.h>

#include <weft/comm/gloo.hpp>
#endif

#include <fmt/core.h>

#include <cstdlib>
#include <functional>
#include <thread>

namespace {
using namespace weft::comm;
using maker = std::function<std::unique_ptr<communicator>(int rank)>;
struct way {
  std::string name;
  std::function<maker(int size)> group;
};
struct measured {
  char const* name;
  std::function<void(communicator&, std::span<float> x, std::span<float> y)> run;
};
std::span<float> part(std::span<float> x, communicator const& c) { return x.first(x.size() / size_t(c.size()) * size_t(c.size())); }
std::vector<measured> const all{
    {"all_reduce", [](auto& c, auto x, auto) { c.all_reduce(x, operation::max); }},
    {"reduce_scatter", [](auto& c, auto x, auto) { c.reduce_scatter(part(x, c), operation::max); }},
    {"all_gather", [](auto& c, auto x, auto) { c.all_gather(part(x, c)); }},
    {"broadcast", [](auto& c, auto x, auto) { c.broadcast(x); }},
    {"all_to_all", [](auto& c, auto x, auto y) { c.all_to_all(part(x, c), part(y, c)); }},
    {"send + receive",
     [](auto& c, auto x, auto) {
       if (c.rank() == 0) c.send(std::span<float const>(x), 1);
       if (c.rank() == 1) c.receive(x, 0);
     }},
    {"barrier", [](auto& c, auto, auto) { c.barrier(); }},
};

double seconds(maker const& make, int size, measured const& m, size_t count) {
  using clock = std::chrono::steady_clock;
  double best = 1e9;
  std::vector<std::jthread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      auto const c = make(r);
      std::vector<float> x(count, 1), y(count);
      for (int turn = 0, turns = count > 100'000 ? 8 : 50; turn < turns; ++turn) {
        c->barrier();
        auto const from = clock::now();
        m.run(*c, x, y);
        double took[1]{std::chrono::duration<double>(clock::now() - from).count()};
        c->all_reduce(std::span<double>(took), operation::max);
        if (r == 0) best = std::min(best, took[0]);
      }
    });
  threads.clear();
  return best;
}
}  // namespace

int main(int count, char** given) {
  std::vector<int> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::atoi(given[i]));
  if (sizes.empty()) sizes = {2, 4};
  for (int s : sizes)
    if (s < 2 || s > 256) return fmt::print(stderr, "comm: give numbers of ranks, 2 to 256\n"), 2;
  std::vector<way> ways{{"in process", [](int size) -> maker {
                           auto g = std::make_shared<local_group>(size);
                           return [g](int r) { return std::make_unique<local_communicator>(g, r, std::chrono::minutes(1)); };
                         }}};
#ifdef WEFT_GLOO
  for (auto order : {sum_order::fastest, sum_order::fixed_tree})
    ways.push_back({order == sum_order::fastest ? "Gloo" : "Gloo, fixed tree", [order](int size) -> maker {
                      auto store = std::make_shared<gloo::rendezvous::HashStore>();
                      return [=](int r) {
                        return std::make_unique<gloo_communicator>(r, size, *store,
                                                                   gloo_options{std::chrono::minutes(1), "127.0.0.1", order});
                      };
                    }});
#endif
  for (int size : sizes)
    for (way const& w : ways) {
      fmt::print("{} ranks, {}\n", size, w.name);
      for (measured const& m : all) {
        if (w.name == "Gloo, fixed tree" && m.name != std::string_view("all_reduce")) continue;  // the others are the same
        fmt::print("  {:15}", m.name);
        for (size_t bytes : {size_t(4096), size_t(1) << 20, size_t(32) << 20}) {
          double const t = seconds(w.group(size), size, m, bytes / sizeof(float));
          if (m.name == std::string_view("barrier")) {
            fmt::print("  {:8.1f} us", 1e6 * t);
            break;
          }
          fmt::print("  {:4} KiB {:8.1f} us {:6.2f} GB/s", bytes >> 10, 1e6 * t, 1e-9 * double(bytes) / t);
        }
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
}
