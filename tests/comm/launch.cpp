// launch.cpp — which rank a process is, by the variables of each launcher; how ranks meet, and whom they refuse.
#include <weft/comm/launch.hpp>
#include <weft/comm/store.hpp>
#include <weft/comm/supervisor.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace weft::comm;

namespace {
using variables = std::map<std::string, std::string>;
launched find(variables const& v, std::string const& rendezvous = "") {
  return find_ranks([&](char const* name) { return v.contains(name) ? v.at(name).c_str() : nullptr; }, rendezvous);
}
std::string refusal(variables const& v, std::string const& rendezvous = "") {
  try {
    find(v, rendezvous);
  } catch (weft::io::input_error const& e) { return e.what(); }
  return "";
}
struct rank_of {
  launched at;
  identity me;
};
// What each rank was told; all meet at one port. Every rank leaves its number and takes all the others'.
std::vector<std::string> meet(std::vector<rank_of> const& all, milliseconds timeout = std::chrono::seconds(10)) {
  std::vector<std::string> said(all.size());
  int const port = weft::comm::detail::free_port();
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        launched at = all[i].at;
        at.port = port;
        tcp_store store(at, all[i].me, timeout);
        store.set(std::to_string(at.rank), "it is\n" + std::to_string(at.rank));
        for (int r = 0; r < at.size; ++r)
          if (store.get(std::to_string(r)) != "it is\n" + std::to_string(r)) said[i] = "another text";
        store.set("done " + std::to_string(at.rank), "");
        if (at.rank == 0)
          for (int r = 1; r < at.size; ++r) store.get("done " + std::to_string(r));
      } catch (weft::io::input_error const& e) { said[i] = e.what(); }
    });
  threads.clear();
  return said;
}
launched rank(int r, int size) {
  launched at;
  at.rank = r, at.size = size;
  return at;
}
}  // namespace

TEST_CASE("variables of launchers") {
  CHECK(find({}).alone());
  CHECK(find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).alone());  // a shell inside a job is no step of it
  variables const master{{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  struct row {
    variables given;
    char const* by;
  };
  for (auto const& [given, by] :
       {row{{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}, "torchrun or --nproc"},
        row{{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}, {"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "4"}},
            "srun"},
        row{{{"OMPI_COMM_WORLD_RANK", "5"},
             {"OMPI_COMM_WORLD_SIZE", "8"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
            "mpirun of Open MPI"},
        row{{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}, "mpirun of MPICH"}}) {
    variables v = given;
    v.insert(master.begin(), master.end());
    launched const at = find(v);
    CHECK(at.by == std::string(by));
    CHECK((at.rank == 5 && at.size == 8 && at.local_rank == 1 && at.local_size == 4));
    CHECK((at.host == "node1" && at.port == 29501));
    CHECK(find(given, "[::1]:77").port == 77);
  }
}

TEST_CASE("half-set and wrong variables are refused by name") {
  CHECK(refusal({{"RANK", "0"}}) == "WORLD_SIZE is not set, but RANK is: start with torchrun or --nproc, or set neither");
  CHECK(refusal({{"PMI_SIZE", "2"}}) == "PMI_RANK is not set, but PMI_SIZE is: start with mpirun of MPICH, or set neither");
  CHECK(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}) == "RANK=2: a whole number from 0 to 1 is needed");
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2x"}}).starts_with("WORLD_SIZE=2x: a whole number from 1"));
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}})
            .starts_with("MASTER_PORT is not set: torchrun or --nproc started 2 ranks"));
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "a").starts_with("rendezvous=a: HOST:PORT"));
}

TEST_CASE("ranks meet") {
  std::vector<rank_of> all;
  for (int r = 0; r < 9; ++r) all.push_back({rank(r, 9), {"m", "g"}});
  for (auto const& text : meet(all)) CHECK(text == "");
}

TEST_CASE("a rank that is not like rank 0 is refused on every rank, with both values") {
  struct row {
    rank_of wrong;
    char const* what;
  };
  for (auto const& [wrong, what] : {row{{rank(2, 4), {"m", "g"}}, "rank 2 has world size 4, rank 0 has 3"},
                                    row{{rank(2, 3), {"n", "g"}}, "rank 2 has model n, rank 0 has m"},
                                    row{{rank(2, 3), {"m", "h"}}, "rank 2 has graph h, rank 0 has g"},
                                    row{{rank(2, 3), {"m", "g", "9.9.9"}}, "rank 2 has version 9.9.9, rank 0 has " WEFT_VERSION}})
    for (auto const& text : meet({{rank(0, 3), {"m", "g"}}, {rank(1, 3), {"m", "g"}}, wrong}))
      CHECK(text == std::string(what) + ": start all ranks alike");
  auto const twice = meet({{rank(0, 3), {}}, {rank(1, 3), {}}, {rank(1, 3), {}}});
  CHECK(twice[0].starts_with("rank 1 came twice"));
}

TEST_CASE("ranks that do not come are named at the deadline") {
  auto const said = meet({{rank(0, 4), {}}, {rank(2, 4), {}}}, milliseconds(200));
  CHECK(said[0].find("waited 200 ms for ranks that did not come: 1, 3") != std::string::npos);
  CHECK(said[1] == said[0]);
  CHECK(meet({{rank(1, 2), {}}}, milliseconds(100))[0].find("rank 1 found nobody at 127.0.0.1:") == 0);
}

TEST_CASE("a killed rank ends the others, and its end is the supervisor's") {
  pid_t const parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    std::signal(SIGTERM, SIG_DFL);  // not doctest's, which would print
    auto const code = supervise(3);
    if (code) std::_Exit(*code);
    if (std::getenv("RANK") == std::string("1")) ::raise(SIGKILL);
    ::sleep(60);
    std::_Exit(0);
  }
  auto const began = std::chrono::steady_clock::now();
  int status = 0;
  REQUIRE(::waitpid(parent, &status, 0) == parent);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
}
