// gpu_survey.hpp — driver, GPUs, and the ways between them, asked of libcuda and libnvidia-ml where they are installed. Their functions are
// called through their documented C interface; no header or library of CUDA is needed to build this.
#pragma once
#include <dlfcn.h>

#include <weft/io/survey.hpp>

namespace weft::io {
namespace detail {
struct shared_object {
  void* at;
  explicit shared_object(char const* name) : at(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  shared_object(shared_object const&) = delete;
  ~shared_object() {
    if (at) ::dlclose(at);
  }
  template <class F> F get(char const* name) const { return reinterpret_cast<F>(::dlsym(at, name)); }
};
struct gpu_seen {
  std::string name, bus;
  int major = 0, minor = 0, node = -1;
  double bytes = 0;
};
}  // namespace detail

inline findings gpus() {
  detail::shared_object const cuda("libcuda.so.1");
  if (!cuda.at) return {{level::ok, "GPU", "no driver (libcuda.so.1): runs are on the CPU", ""}};
  auto const init = cuda.get<int (*)(unsigned)>("cuInit");
  auto const version = cuda.get<int (*)(int*)>("cuDriverGetVersion");
  auto const count = cuda.get<int (*)(int*)>("cuDeviceGetCount");
  auto const device = cuda.get<int (*)(int*, int)>("cuDeviceGet");
  auto const name = cuda.get<int (*)(char*, int, int)>("cuDeviceGetName");
  auto const attribute = cuda.get<int (*)(int*, int, int)>("cuDeviceGetAttribute");
  auto const memory = cuda.get<int (*)(std::size_t*, int)>("cuDeviceTotalMem_v2");
  auto const bus = cuda.get<int (*)(char*, int, int)>("cuDeviceGetPCIBusId");
  auto const peers = cuda.get<int (*)(int*, int, int)>("cuDeviceCanAccessPeer");
  if (!init || !version || !count || !device || !name || !attribute || !memory || !bus || !peers)
    return {{level::failure, "GPU", "libcuda.so.1 is too old", "install a driver of CUDA 12.8 or later"}};
  int of_driver = 0, n = 0;
  version(&of_driver);
  if (int const failed = init(0); failed != 0 || count(&n) != 0 || n == 0)
    return {{level::warning, "GPU", fmt::format("a driver is there, but no GPU (error {})", failed),
             "nvidia-smi tells more; in a container: --gpus all"}};
  findings out;
  std::string const driver = fmt::format("CUDA {}.{}", of_driver / 1000, of_driver % 1000 / 10);
  out.push_back(of_driver >= 12080 ? finding{level::ok, "driver", driver, ""}
                                   : finding{level::failure, "driver", driver, "kernels are built with CUDA 13: install a newer driver"});
  std::vector<detail::gpu_seen> all;
  for (int i = 0; i < n; ++i) {
    detail::gpu_seen g;
    char text[256] = {};
    int d = 0;
    std::size_t bytes = 0;
    device(&d, i);
    if (name(text, sizeof text, d) == 0) g.name = text;
    attribute(&g.major, 75, d), attribute(&g.minor, 76, d);
    if (memory(&bytes, d) == 0) g.bytes = double(bytes);
    if (bus(text, sizeof text, d) == 0) g.bus = text;
    for (char& c : g.bus) c = char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    std::string const node = detail::first_line("/sys/bus/pci/devices/" + g.bus + "/numa_node");
    if (!node.empty()) g.node = std::atoi(node.c_str());
    std::string const is = fmt::format("{}: {}, {}, compute capability {}.{}, NUMA node {}", i, g.name, detail::gigabytes(g.bytes), g.major,
                                       g.minor, g.node < 0 ? "unknown" : std::to_string(g.node));
    if (g.major < 8) out.push_back({level::failure, "GPU", is, "kernels need compute capability 8.0 or later (built for 9.0)"});
    else out.push_back({level::ok, "GPU", is, ""});
    all.push_back(std::move(g));
  }
  // NVLink by NVML: how many links of a GPU are up
  detail::shared_object const nvml("libnvidia-ml.so.1");
  std::vector<int> links(all.size(), 0);
  if (nvml.at) {
    auto const start = nvml.get<int (*)()>("nvmlInit_v2");
    auto const handle = nvml.get<int (*)(char const*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    auto const state = nvml.get<int (*)(void*, unsigned, int*)>("nvmlDeviceGetNvLinkState");
    auto const stop = nvml.get<int (*)()>("nvmlShutdown");
    if (start && handle && state && stop && start() == 0) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        void* h = nullptr;
        if (handle(all[i].bus.c_str(), &h) != 0) continue;
        for (unsigned l = 0; l < 18; ++l) {
          int up = 0;
          links[i] += state(h, l, &up) == 0 && up == 1;
        }
      }
      stop();
    }
  }
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      int there = 0, back = 0;
      peers(&there, a, b), peers(&back, b, a);
      std::size_t const i = std::size_t(a), j = std::size_t(b);
      std::string const is = fmt::format("{} and {}: peer access {}, NVLink {}", a, b, there && back ? "yes" : "no",
                                         links[i] && links[j] ? fmt::format("{} and {} links up", links[i], links[j]) : "none");
      if (!there || !back)
        out.push_back({level::warning, "GPU pair", is, "data go through host memory: check ACS and the IOMMU, or use GPUs of one switch"});
      else if (all[i].node >= 0 && all[j].node >= 0 && all[i].node != all[j].node && !(links[i] && links[j]))
        out.push_back({level::warning, "GPU pair", is + ", on two NUMA nodes", "keep a group on one node"});
      else out.push_back({level::ok, "GPU pair", is, ""});
    }
  auto const here = numa_nodes_of_process();
  std::set<int> of_gpus;
  for (auto const& g : all) of_gpus.insert(g.node);
  if (of_gpus.size() == 1 && *of_gpus.begin() >= 0 && (here.size() != 1 || *here.begin() != *of_gpus.begin()))
    out.push_back({level::warning, "NUMA", fmt::format("the GPUs are on node {}, this process may run elsewhere", *of_gpus.begin()),
                   fmt::format("numactl --cpunodebind={0} --membind={0}", *of_gpus.begin())});
  return out;
}
inline finding library(char const* what, char const* file, char const* remedy) {
  detail::shared_object const at(file);
  if (at.at) return {level::ok, "library", fmt::format("{} ({})", what, file), ""};
  return {level::ok, "library", fmt::format("{} is not installed: {}", what, remedy), ""};
}
}  // namespace weft::io
