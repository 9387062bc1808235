// replay.cuh — work that is enqueued the first time, captured into a graph the second, and replayed from then on.
//
//   replay(on, key("decode", rows, pointer), [&] { kernels... });
//
// The key names everything that the work was enqueued with: a captured graph repeats the same pointers, sizes and settings. The first time
// finds what may not be looked for in a capture (plans of products, sizes of grids). A context without graphs (eager mode) enqueues every
// time; the bits are the same.
#pragma once
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <weft/kernels/cuda/context.cuh>

namespace weft::kernels {
class graph_cache {
 public:
  graph_cache() = default;
  graph_cache(graph_cache const&) = delete;
  graph_cache& operator=(graph_cache const&) = delete;
  ~graph_cache() {
    for (auto const& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
  }
  size_t captured = 0, launched = 0;

  template <class F> void launch(cudaStream_t stream, std::string const& key, F const& enqueue) {
    if (met_.insert(key).second) return enqueue();
    auto found = graphs_.find(key);
    if (found == graphs_.end()) {
      cudaGraph_t graph{};
      cudaGraphExec_t exec{};
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
      try {
        enqueue();
      } catch (...) {
        cudaStreamEndCapture(stream, &graph);
        if (graph) cudaGraphDestroy(graph);
        throw;
      }
      check(cudaStreamEndCapture(stream, &graph), "end capture");
      cudaError_t const e = cudaGraphInstantiate(&exec, graph, 0);
      cudaGraphDestroy(graph);
      check(e, "instantiate a graph");
      found = graphs_.emplace(key, exec).first;
      ++captured;
    }
    check(cudaGraphLaunch(found->second, stream), "launch a graph");
    ++launched;
  }

 private:
  std::unordered_set<std::string> met_;
  std::unordered_map<std::string, cudaGraphExec_t> graphs_;
};

template <class... A> std::string key(char const* name, A const&... parts) {
  std::string k = name;
  auto const add = [&](auto const& part) {
    static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(part)>>);
    k.append(1, '\0').append(reinterpret_cast<char const*>(&part), sizeof part);
  };
  (add(parts), ...);
  return k;
}
template <class F> void replay(cuda_context& on, std::string const& key, F const& enqueue) {
  if (on.graphs) on.graphs->launch(on.stream, key, enqueue);
  else enqueue();
}
}  // namespace weft::kernels
