// comm/nccl.hpp — ranks that are processes with a GPU each, by NCCL (link with -lnccl). Memory is the GPU's; collectives are put on a stream and may be captured.
// NCCL reports neither a dead nor a stopped peer within a node, and its abort may hang: so nothing here waits inside NCCL. Joining and
// finish() poll with the communicator's own timeout and throw; what the process does then is to end. The watchdog is finish(): it names
// the first collective that did not complete.
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>

#include <deque>
#include <thread>

#include <weft/comm/communicator.hpp>

namespace weft::comm {
class nccl_communicator final : public communicator {
 public:
  static ncclUniqueId unique_id() {  // made by one rank, handed to all
    ncclUniqueId id;
    if (ncclResult_t const e = ncclGetUniqueId(&id); e != ncclSuccess) throw std::runtime_error(ncclGetErrorString(e));
    return id;
  }
  // Of the current device. Returns when all ranks have joined.
  nccl_communicator(int rank, int size, ncclUniqueId const& id, cudaStream_t stream, milliseconds timeout)
      : communicator(rank, size, timeout), stream_(stream) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      settle(ncclCommInitRankConfig(&comm_, size, id, rank, &config));
    } catch (std::exception const& e) { throw error({rank, size, "join", 0}, e.what()); }
  }
  ~nccl_communicator() override {
    for (auto const& p : pending_) cudaEventDestroy(p.done);
    if (pending_.empty() && healthy_) {  // destroying waits for peers: only a communicator without open calls is
      ncclCommFinalize(comm_);
      try {
        settle(ncclInProgress);
        ncclCommDestroy(comm_);
      } catch (std::exception const&) {}  // the process is about to end
    }
  }
  // Waits until all that was called is done, with the timeout from the last completion. Not while capturing.
  void finish() {
    while (!pending_.empty()) {
      auto const deadline = std::chrono::steady_clock::now() + timeout();
      cudaError_t e;
      while ((e = cudaEventQuery(pending_.front().done)) == cudaErrorNotReady) {
        ncclResult_t asynchronous = ncclSuccess;
        ncclCommGetAsyncError(comm_, &asynchronous);
        if (asynchronous != ncclSuccess && asynchronous != ncclInProgress) give_up(ncclGetErrorString(asynchronous));
        if (std::chrono::steady_clock::now() > deadline) give_up("not done in " + std::to_string(timeout().count()) + " ms");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      if (e != cudaSuccess) give_up(cudaGetErrorString(e));
      cudaEventDestroy(pending_.front().done);
      pending_.pop_front();
    }
  }

 private:
  struct begun {
    char const* collective;
    std::uint64_t number;
    cudaEvent_t done;
  };
  cudaStream_t stream_;
  ncclComm_t comm_ = nullptr;
  std::deque<begun> pending_;
  bool healthy_ = true;

  [[noreturn]] void give_up(std::string const& why) {
    healthy_ = false;
    throw error({rank(), size(), pending_.front().collective, pending_.front().number}, why);
  }
  void settle(ncclResult_t e) {  // a non-blocking call is over when the state says so
    auto const deadline = std::chrono::steady_clock::now() + timeout();
    while (e == ncclInProgress) {
      if (std::chrono::steady_clock::now() > deadline) fail("no answer from all ranks in " + std::to_string(timeout().count()) + " ms");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      ncclResult_t state = ncclInProgress;
      if (ncclResult_t const asked = ncclCommGetAsyncError(comm_, &state); asked != ncclSuccess) state = asked;
      e = state;
    }
    if (e != ncclSuccess) fail(ncclGetErrorString(e));
  }
  [[noreturn]] void fail(std::string const& why) {
    healthy_ = false;
    throw std::runtime_error(why);
  }
  void begin(char const* what, std::uint64_t number, ncclResult_t e) {
    settle(e);
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream_, &capturing);
    if (capturing != cudaStreamCaptureStatusNone) return;  // who replays it watches the replay
    pending_.push_back({what, number, nullptr});
    cudaEventCreateWithFlags(&pending_.back().done, cudaEventDisableTiming);
    cudaEventRecord(pending_.back().done, stream_);
  }
  static ncclDataType_t type_of(reduction r) {
    constexpr ncclDataType_t types[] = {ncclFloat32, ncclFloat64, ncclInt32, ncclUint32, ncclInt64, ncclUint64};
    return types[static_cast<int>(r.of)];
  }
  static ncclRedOp_t operation_of(reduction r) {
    constexpr ncclRedOp_t operations[] = {ncclSum, ncclMin, ncclMax};
    return operations[static_cast<int>(r.by)];
  }
  std::byte* mine(void* x, size_t bytes) const { return static_cast<std::byte*>(x) + static_cast<size_t>(rank()) * bytes; }

  void all_reduce_bytes(void* x, size_t count, reduction r) override {
    begin("all_reduce", collectives(), ncclAllReduce(x, x, count, type_of(r), operation_of(r), comm_, stream_));
  }
  void all_gather_bytes(void* x, size_t n) override {
    begin("all_gather", collectives(), ncclAllGather(mine(x, n), x, n, ncclInt8, comm_, stream_));
  }
  void reduce_scatter_bytes(void* x, size_t count, reduction r) override {
    begin("reduce_scatter", collectives(),
          ncclReduceScatter(x, mine(x, count * bytes_of(r.of)), count, type_of(r), operation_of(r), comm_, stream_));
  }
  void broadcast_bytes(void* x, size_t n, int root) override {
    begin("broadcast", collectives(), ncclBroadcast(x, x, n, ncclInt8, root, comm_, stream_));
  }
  void all_to_all_bytes(void const* from, void* to, size_t n) override {
    ncclGroupStart();
    for (int k = 0; k < size(); ++k) {
      ncclSend(static_cast<std::byte const*>(from) + static_cast<size_t>(k) * n, n, ncclInt8, k, comm_, stream_);
      ncclRecv(static_cast<std::byte*>(to) + static_cast<size_t>(k) * n, n, ncclInt8, k, comm_, stream_);
    }
    begin("all_to_all", collectives(), ncclGroupEnd());
  }
  void send_bytes(void const* x, size_t n, int to) override { begin("send", messages(), ncclSend(x, n, ncclInt8, to, comm_, stream_)); }
  void receive_bytes(void* x, size_t n, int from) override { begin("receive", messages(), ncclRecv(x, n, ncclInt8, from, comm_, stream_)); }
  void wait_for_all() override {  // an empty sum is no meeting for NCCL: one byte is gathered
    if (token_ == nullptr && cudaMalloc(&token_, static_cast<size_t>(size())) != cudaSuccess) fail("no device memory for a barrier");
    begin("barrier", collectives(), ncclAllGather(mine(token_, 1), token_, 1, ncclInt8, comm_, stream_));
    finish();
  }
  void* token_ = nullptr;
};
}  // namespace weft::comm
