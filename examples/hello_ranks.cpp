// Ranks meet, find out whether they are alike, and add up their numbers: the smallest program of many processes.
//   build/examples/hello_ranks --nproc 4
#include <program/program.hpp>

#include <weft/comm/supervisor.hpp>
#ifdef WEFT_GLOO
#include <weft/comm/gloo.hpp>
#endif

#include <fmt/core.h>

#include <vector>

namespace {
int hello([[maybe_unused]] std::string const& rendezvous, [[maybe_unused]] std::int64_t timeout,
          [[maybe_unused]] std::string const& model) {
#ifdef WEFT_GLOO
  auto const at = weft::comm::find_ranks(rendezvous);
  auto const c = weft::comm::join(at, {model, "hello"}, {std::chrono::seconds(timeout)});
  std::vector<int> sum{c->rank()};
  c->all_reduce(std::span(sum));
  fmt::print("rank {} of {} by {}, {} of {} here: the ranks add up to {}\n", c->rank(), c->size(), at.by, at.local_rank, at.local_size,
             sum[0]);
  return 0;
#else
  throw weft::io::input_error("this program was built without Gloo (libgloo-dev): there is one rank");
#endif
}
}  // namespace

int main(int argc, char** argv) {
  std::int64_t nproc = 0, timeout = 30;
  std::string rendezvous, model = "none";
  return program::main(argc, argv, {"hello_ranks", "ranks meet and add up their numbers"},
                       {{"--nproc", &nproc, "start so many ranks on this machine"},
                        {"--rendezvous", &rendezvous, "HOST:PORT where rank 0 answers; MASTER_ADDR and the port after MASTER_PORT"},
                        {"--timeout", &timeout, "seconds to wait for another rank"},
                        {"--identity", &model, "must be the same on all ranks"}},
                       [&] {
                         if (timeout < 1) throw weft::io::input_error("--timeout: at least one second");
                         if (nproc != 0)
                           if (auto const code = weft::comm::supervise(nproc)) return *code;
                         return hello(rendezvous, timeout, model);
                       });
}
