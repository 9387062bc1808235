// ranks.hpp — ranks as threads, in process or over Gloo. A rank's error is thrown again where all have ended.
#pragma once
#include <exception>
#include <functional>
#include <thread>

#include <weft/comm/local.hpp>
#ifdef WEFT_GLOO
#include <gloo/rendezvous/hash_store.h>

#include <weft/comm/gloo.hpp>
#endif

namespace ranks {
using namespace weft::comm;
using body = std::function<void(communicator&)>;
using maker = std::function<std::unique_ptr<communicator>(int rank)>;

// What each rank threw; empty where it ended well.
inline std::vector<std::string> errors(int size, maker const& make, body const& f) {
  std::vector<std::string> said(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        auto const c = make(r);
        f(*c);
      } catch (std::exception const& e) { said[static_cast<size_t>(r)] = e.what(); }
    });
  threads.clear();
  return said;
}
inline maker in_process(int size, milliseconds timeout = std::chrono::seconds(20)) {
  auto group = std::make_shared<local_group>(size);
  return [=](int r) { return std::make_unique<local_communicator>(group, r, timeout); };
}
#ifdef WEFT_GLOO
inline maker over_gloo(int size, sum_order order, milliseconds timeout = std::chrono::seconds(20)) {
  auto store = std::make_shared<gloo::rendezvous::HashStore>();
  return [=](int r) { return std::make_unique<gloo_communicator>(r, size, *store, gloo_options{timeout, "127.0.0.1", order}); };
}
#endif
}  // namespace ranks
