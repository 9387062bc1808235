// survey.hpp — what a machine offers and what a run needs of it, as findings: ok, warning or failure, with the reason and the remedy.
// Nothing here needs a GPU or its headers: the driver and NVML are opened when they are there (gpu_survey.hpp).
#pragma once
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json.hpp>

namespace weft::io {
enum class level { ok, warning, failure };
struct finding {
  level how;
  std::string what, is, remedy;  // remedy: of what is not ok
};
using findings = std::vector<finding>;

namespace detail {
inline std::string first_line(path const& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}
inline std::set<int> numbers_of(std::string const& list) {  // 0-3,8
  std::set<int> all;
  for (char const* at = list.c_str(); *at;) {
    char* end = nullptr;
    long const from = std::strtol(at, &end, 10);
    if (end == at) break;
    long to = from;
    if (*end == '-') to = std::strtol(end + 1, &end, 10);
    for (long i = from; i <= to && all.size() < 4096; ++i) all.insert(int(i));
    at = *end == ',' ? end + 1 : end;
    if (at == end && *end) break;
  }
  return all;
}
inline std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }
}  // namespace detail

inline std::set<int> numa_nodes_of_process() {  // nodes whose processors this process may run on
  cpu_set_t set;
  std::set<int> nodes;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return nodes;
  std::error_code none;
  for (auto const& entry : std::filesystem::directory_iterator("/sys/devices/system/node", none)) {
    std::string const name = entry.path().filename().string();
    if (!name.starts_with("node") || name.size() < 5 || name[4] < '0' || name[4] > '9') continue;
    for (int cpu : detail::numbers_of(detail::first_line(entry.path() / "cpulist")))
      if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set)) nodes.insert(std::atoi(name.c_str() + 4));
  }
  return nodes;
}
inline finding processors() {
  cpu_set_t set;
  int const mine = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;
  auto const nodes = numa_nodes_of_process();
  std::string const is = fmt::format("{} of {} processors, on {} NUMA node{}, load {:.1f}", mine, ::sysconf(_SC_NPROCESSORS_ONLN),
                                     nodes.size(), nodes.size() == 1 ? "" : "s", load);
  if (nodes.size() > 1) return {level::warning, "processors", is, "keep a process on one node: numactl --cpunodebind=N --membind=N"};
  if (load > 1.5 * mine) return {level::warning, "processors", is, "others are computing here: times will not be yours"};
  return {level::ok, "processors", is, ""};
}
inline finding memory_left(double wanted = 0) {
  double available = 0, limit = 0;
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("MemAvailable:")) available = 1024.0 * std::strtod(line.c_str() + 13, nullptr);
  for (char const* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (double const most = std::strtod(detail::first_line(file).c_str(), nullptr); most > 0 && most < 1e15) limit = most;
  std::string is = detail::gigabytes(available) + " available";
  if (limit > 0) is += ", limited to " + detail::gigabytes(limit);
  double const usable = limit > 0 && limit < available ? limit : available;
  if (wanted > usable)
    return {level::failure, "memory", is, "the plan needs " + detail::gigabytes(wanted) + ": --explain tells what lowers it"};
  if (usable < 1e9) return {level::warning, "memory", is, "little is left: end other programs"};
  return {level::ok, "memory", is, ""};
}
inline finding shared_memory(bool wanted) {
  struct statvfs about;
  if (::statvfs("/dev/shm", &about) != 0)
    return {wanted ? level::failure : level::warning, "shared memory", "/dev/shm is not there",
            "mount a tmpfs there; NCCL and Gloo use it within a node"};
  double const bytes = double(about.f_bavail) * double(about.f_frsize);
  std::string const is = "/dev/shm has " + detail::gigabytes(bytes) + " free";
  if (bytes < 1e9 && wanted) return {level::warning, "shared memory", is, "containers start with 64 MB: --shm-size=8g"};
  return {level::ok, "shared memory", is, ""};
}
inline finding pinned_memory(bool wanted) {
  rlimit most;
  ::getrlimit(RLIMIT_MEMLOCK, &most);
  bool const free = most.rlim_cur == RLIM_INFINITY;
  std::string const is = free ? "no limit" : "limited to " + detail::gigabytes(double(most.rlim_cur));
  if (!free && wanted && double(most.rlim_cur) < 1e9)
    return {level::warning, "pinned memory", is, "ulimit -l unlimited: network cards need pinned buffers"};
  return {level::ok, "pinned memory", is, ""};
}
inline finding open_files() {
  rlimit most;
  ::getrlimit(RLIMIT_NOFILE, &most);
  std::string const is = fmt::format("at most {}", most.rlim_cur);
  if (most.rlim_cur < 1024) return {level::warning, "open files", is, "ulimit -n 65536"};
  return {level::ok, "open files", is, ""};
}

// Interfaces that are up, with the one that rendezvous would use: the subnet of MASTER_ADDR, else the first that is no loopback.
inline findings network() {
  struct address {
    std::string name, text;
    std::uint32_t ip, mask;
    bool loopback;
  };
  std::vector<address> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    for (ifaddrs* i = list; i; i = i->ifa_next) {
      if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
      auto const ip = reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr,
                 mask = reinterpret_cast<sockaddr_in*>(i->ifa_netmask)->sin_addr;
      char text[INET_ADDRSTRLEN];
      ::inet_ntop(AF_INET, &ip, text, sizeof text);
      all.push_back({i->ifa_name, text, ntohl(ip.s_addr), ntohl(mask.s_addr), (i->ifa_flags & IFF_LOOPBACK) != 0});
    }
    ::freeifaddrs(list);
  }
  findings out;
  if (all.empty())
    return {
        {level::warning, "network", "no interface is up", "one process needs none; several on this machine need lo: ip link set lo up"}};
  char const* const master = std::getenv("MASTER_ADDR");
  address const* used = nullptr;
  in_addr wanted;
  if (master && ::inet_pton(AF_INET, master, &wanted) == 1)
    for (auto const& a : all)
      if ((a.ip & a.mask) == (ntohl(wanted.s_addr) & a.mask)) used = &a;
  for (auto const& a : all)
    if (!used && !a.loopback) used = &a;
  if (!used) used = &all.front();
  for (auto const& a : all) {
    bool const same = std::count_if(all.begin(), all.end(), [&](auto const& b) { return (a.ip & a.mask) == (b.ip & b.mask); }) > 1;
    std::string const is = fmt::format("{} {}{}", a.name, a.text,
                                       &a == used ? fmt::format(", rendezvous would use it{}", master ? " (MASTER_ADDR)" : "") : "");
    if (same)
      out.push_back({level::warning, "network", is + ", in the subnet of another interface",
                     "give each its own subnet: else the kernel sends what is for one over the other"});
    else out.push_back({level::ok, "network", is, ""});
  }
  return out;
}

// Room, and with bytes > 0 the rate of writing so many (until they are on the disk) and of reading them back (not from memory).
inline findings storage(path const& folder, std::size_t bytes) {
  findings out;
  path at = folder;
  while (!at.empty() && !std::filesystem::exists(at)) at = at.parent_path();
  if (at.empty()) at = ".";
  struct statvfs about;
  if (::statvfs(at.c_str(), &about) != 0)
    return {{level::failure, "storage", folder.string() + " cannot be looked at", "choose another --out"}};
  double const room = double(about.f_bavail) * double(about.f_frsize);
  std::string const is = fmt::format("{} has {} free", folder.string(), detail::gigabytes(room));
  if (::access(at.c_str(), W_OK) != 0)
    out.push_back({level::failure, "storage", folder.string() + " may not be written", "choose another --out"});
  else if (room < 2e9)
    out.push_back({level::warning, "storage", is, "a checkpoint takes three times the model and more: make room, or set max_ckpt_to_keep"});
  else out.push_back({level::ok, "storage", is, ""});
  if (!bytes || out[0].how == level::failure) return out;
  path const file = at / fmt::format(".weft_doctor_{}", ::getpid());
  auto const now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  try {
    std::string block(std::size_t{4} << 20, '\0');
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = char(i * 2654435761u >> 13);
    descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (fd.get() < 0) refuse_file("create", file);
    double const start = now();
    for (std::size_t done = 0; done < bytes; done += block.size()) write_all(fd, file, block.data(), block.size());
    sync(fd, file);
    double const written = now();
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    double const reading = now();
    for (std::size_t done = 0; done < bytes; done += block.size()) read_at(fd, file, done, block.data(), block.size());
    double const wrote = double(bytes) / (written - start) / 1e9, read = double(bytes) / (now() - reading) / 1e9;
    std::string const rates = fmt::format("{} writes {:.2f} GB/s, reads {:.2f} GB/s", folder.string(), wrote, read);
    if (wrote < 2)
      out.push_back({level::warning, "storage rate", rates,
                     fmt::format("below 2 GB/s: a checkpoint of a 1.5B model (18 GB) takes {:.0f} s; save less often or on a faster disk",
                                 18 / wrote)});
    else out.push_back({level::ok, "storage rate", rates, ""});
  } catch (input_error const& e) { out.push_back({level::failure, "storage rate", e.what(), "choose another --out"}); }
  ::unlink(file.c_str());
  return out;
}
// The clock against the one that dates files in `folder`: on shared storage that is another machine's.
inline finding clock_against(path const& folder) {
  path at = std::filesystem::exists(folder) ? folder : ".", file = at / fmt::format(".weft_clock_{}", ::getpid());
  descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd.get() < 0) return {level::warning, "clock", "no file can be made to compare with", "choose another --out"};
  struct stat about = {};
  if (::write(fd.get(), "x", 1) != 1 || ::fstat(fd.get(), &about) != 0) about.st_mtim = {};
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::unlink(file.c_str());
  double const skew = double(now.tv_sec - about.st_mtim.tv_sec) + 1e-9 * double(now.tv_nsec - about.st_mtim.tv_nsec);
  std::string const is = fmt::format("{:+.3f} s against the storage of {}", skew, at.string());
  if (skew > 1 || skew < -1)
    return {level::warning, "clock", is,
            "set clocks by NTP; weft's time-outs use steady clocks, but logs of machines will not fit together"};
  return {level::ok, "clock", is, ""};
}
// What a launcher's variables say, as far as they are there.
inline finding launcher() {
  auto const get = [](char const* name) { return std::getenv(name); };
  for (auto const& [rank, world, who] :
       {std::array{"RANK", "WORLD_SIZE", "torchrun"}, std::array{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"},
        std::array{"SLURM_PROCID", "SLURM_NTASKS", "Slurm"}, std::array{"PMI_RANK", "PMI_SIZE", "MPICH"}}) {
    if (!get(rank) && !get(world)) continue;
    if (!get(rank) || !get(world))
      return {level::failure, "launcher", fmt::format("{} without {}", get(rank) ? rank : world, get(rank) ? world : rank),
              "start through the launcher, or unset both"};
    return {level::ok, "launcher", fmt::format("{}: rank {} of {}", who, get(rank), get(world)), ""};
  }
  return {level::ok, "launcher", "none: one process", ""};
}

// What a trainer looks at before it starts: cheap, and without a line for what is well.
inline findings quick_checks(path const& out, double bytes) {
  findings all{memory_left(bytes), processors(), open_files(), launcher()};
  for (finding& f : storage(out, 0)) all.push_back(std::move(f));
  std::erase_if(all, [](finding const& f) { return f.how == level::ok; });
  return all;
}

inline char const* name_of(level l) { return l == level::ok ? "ok" : l == level::warning ? "warning" : "failure"; }
inline json as_json(findings const& all) {
  json::array lines;
  for (finding const& f : all)
    lines.push_back(json::object{{"level", name_of(f.how)}, {"what", f.what}, {"is", f.is}, {"remedy", f.remedy}});
  return lines;
}
}  // namespace weft::io
