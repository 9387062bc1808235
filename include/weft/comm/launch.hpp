// comm/launch.hpp — which rank this process is, from the variables of whoever started it: torchrun (also weft's own supervisor), srun, Open MPI's or
// MPICH's mpirun. A half-set environment is refused by the name of what is missing.
#pragma once
#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include <weft/io/input_error.hpp>

namespace weft::comm {
struct launched {
  char const* by = "no launcher";
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this machine: which GPU, how many share the cores
  std::string host = "127.0.0.1";      // of rank 0
  int port = 0;                        // where rank 0 answers; 0: it was not told
  bool alone() const { return size == 1; }
};

using environment = std::function<char const*(char const* name)>;  // as std::getenv

namespace detail {
struct launcher {
  char const *name, *rank, *size, *local_rank, *local_size;
};
// In the order in which they are looked for. Slurm's variables exist in an interactive shell too: a step of it has SLURM_STEP_ID, and
// ranks only if there are several tasks.
inline constexpr launcher launchers[] = {
    {"torchrun or --nproc", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};
inline int whole_number(char const* name, std::string const& text, int least, int most) {
  int value = 0;
  auto const [end, e] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (e != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw io::input_error(std::string(name) + "=" + text.substr(0, 40) + ": a whole number from " + std::to_string(least) + " to " +
                          std::to_string(most) + " is needed");
  return value;
}
}  // namespace detail

// HOST:PORT of rank 0; empty: MASTER_ADDR and the port after MASTER_PORT, which torchrun keeps for itself.
inline launched find_ranks(environment const& get, std::string const& rendezvous = "") {
  constexpr int most_ranks = 1 << 20;
  auto const has = [&](char const* name) { return get(name) != nullptr; };
  launched found;
  for (auto const& l : detail::launchers) {
    bool const slurm = l.name == std::string("srun");
    if (slurm && (!has("SLURM_STEP_ID") || !has(l.size) || get(l.size) == std::string("1"))) continue;
    if (!has(l.rank) && !has(l.size)) continue;
    for (char const* name : {l.rank, l.size})
      if (!has(name))
        throw io::input_error(std::string(name) + " is not set, but " + (name == l.rank ? l.size : l.rank) + " is: start with " + l.name +
                              ", or set neither");
    found.by = l.name;
    found.size = detail::whole_number(l.size, get(l.size), 1, most_ranks);
    found.rank = detail::whole_number(l.rank, get(l.rank), 0, found.size - 1);
    if (has(l.local_rank)) found.local_rank = detail::whole_number(l.local_rank, get(l.local_rank), 0, most_ranks);
    std::string const local = has(l.local_size) ? get(l.local_size) : std::to_string(found.local_rank + 1);
    found.local_size = detail::whole_number(l.local_size, local, found.local_rank + 1, most_ranks);
    break;
  }
  if (found.alone()) return found;
  if (!rendezvous.empty()) {
    auto const colon = rendezvous.rfind(':');
    if (colon == std::string::npos || colon == 0) throw io::input_error("rendezvous=" + rendezvous + ": HOST:PORT is needed");
    found.host = rendezvous.substr(0, colon);
    found.port = detail::whole_number("rendezvous port", rendezvous.substr(colon + 1), 1, 65535);
    return found;
  }
  for (char const* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (!has(name))
      throw io::input_error(std::string(name) + " is not set: " + found.by + " started " + std::to_string(found.size) +
                            " ranks, and they must know where rank 0 is (--rendezvous HOST:PORT)");
  found.host = get("MASTER_ADDR");
  found.port = detail::whole_number("MASTER_PORT", get("MASTER_PORT"), 1, 65534) + 1;
  return found;
}
inline launched find_ranks(std::string const& rendezvous = "") {
  return find_ranks([](char const* name) -> char const* { return std::getenv(name); }, rendezvous);
}
}  // namespace weft::comm
