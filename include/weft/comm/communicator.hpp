// comm/communicator.hpp — what ranks say to each other: collectives over typed spans, in place on the caller's memory. One class for every
// transport (local.hpp, gloo.hpp, nccl.hpp), so that what communicates is compiled once. Every rank calls the same collectives in the same
// order; they are numbered from 1, and so are a rank's sends and receives, apart from them: not every rank has those. An error names rank,
// collective and number, and is the last thing that the communicator does.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <weft/comm/reduce.hpp>

namespace weft::comm {
using std::chrono::milliseconds;

struct call_site {
  int rank, size;
  char const* collective;
  std::uint64_t number;
};
class error : public std::runtime_error {
 public:
  error(call_site const& w, std::string const& why)
      : runtime_error("rank " + std::to_string(w.rank) + " of " + std::to_string(w.size) + ": " + w.collective + " number " +
                      std::to_string(w.number) + ": " + why)
      , where(w) {}
  call_site where;
};

template <class T>
concept movable = std::is_trivially_copyable_v<T> && !std::is_const_v<T>;

class communicator {
 public:
  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  virtual ~communicator() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::uint64_t collectives() const { return collectives_; }  // begun so far
  std::uint64_t messages() const { return messages_; }        // sent and received
  milliseconds timeout() const { return timeout_; }

  // Everyone's x becomes the sum (least, greatest) over all ranks.
  template <addable T> void all_reduce(std::span<T> x, operation by = operation::sum) {
    call("all_reduce", [&] { all_reduce_bytes(x.data(), x.size(), {number_of<T>, by}); });
  }
  // x is one equal share per rank, in their order; own share in, all shares out.
  template <movable T> void all_gather(std::span<T> x) {
    call("all_gather", [&] { all_gather_bytes(x.data(), share(x.size()) * sizeof(T)); });
  }
  // x is one equal share per rank; own share becomes the sum over ranks, the others are left undefined.
  template <addable T> void reduce_scatter(std::span<T> x, operation by = operation::sum) {
    call("reduce_scatter", [&] { reduce_scatter_bytes(x.data(), share(x.size()), {number_of<T>, by}); });
  }
  template <movable T> void broadcast(std::span<T> x, int root = 0) {
    call("broadcast", [&] { broadcast_bytes(x.data(), x.size_bytes(), peer(root)); });
  }
  // Share k of `from` goes to rank k, where it is share `rank()` of `to`. The two may not overlap.
  template <movable T> void all_to_all(std::type_identity_t<std::span<T const>> from, std::span<T> to) {
    call("all_to_all", [&] {
      if (from.size() != to.size())
        throw std::invalid_argument("sends " + std::to_string(from.size()) + " elements and takes " + std::to_string(to.size()));
      all_to_all_bytes(from.data(), to.data(), share(to.size()) * sizeof(T));
    });
  }
  template <movable T> void send(std::span<T const> x, int to) {
    call("send", ++messages_, [&] { send_bytes(x.data(), x.size_bytes(), other(to)); });
  }
  template <movable T> void receive(std::span<T> x, int from) {
    call("receive", ++messages_, [&] { receive_bytes(x.data(), x.size_bytes(), other(from)); });
  }
  void barrier() {
    call("barrier", [&] { wait_for_all(); });
  }

 protected:
  communicator(int rank, int size, milliseconds timeout) : rank_(rank), size_(size), timeout_(timeout) {
    if (size < 1 || rank < 0 || rank >= size)
      throw std::invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(size) + ": ranks are numbered from 0");
    if (timeout.count() < 1) throw std::invalid_argument("a timeout of " + std::to_string(timeout.count()) + " ms: give at least 1");
  }
  // Counts are of elements of the reduction, or bytes of one share. Each throws what went wrong.
  virtual void all_reduce_bytes(void* x, size_t count, reduction) = 0;
  virtual void all_gather_bytes(void* x, size_t bytes) = 0;
  virtual void reduce_scatter_bytes(void* x, size_t count, reduction) = 0;
  virtual void broadcast_bytes(void* x, size_t bytes, int root) = 0;
  virtual void all_to_all_bytes(void const* from, void* to, size_t bytes) = 0;
  virtual void send_bytes(void const* x, size_t bytes, int to) = 0;
  virtual void receive_bytes(void* x, size_t bytes, int from) = 0;
  virtual void wait_for_all() = 0;

 private:
  int rank_, size_;
  milliseconds timeout_;
  std::uint64_t collectives_ = 0, messages_ = 0;
  std::string broken_;

  template <class F> void call(char const* what, F const& f) { call(what, ++collectives_, f); }
  template <class F> void call(char const* what, std::uint64_t number, F const& f) {
    if (!broken_.empty()) throw error({rank_, size_, what, number}, "after an earlier error: " + broken_);
    try {
      f();
    } catch (std::exception const& e) {
      broken_ = e.what();
      throw error({rank_, size_, what, number}, broken_);
    }
  }
  size_t share(size_t count) const {
    if (count % static_cast<size_t>(size_) != 0)
      throw std::invalid_argument(std::to_string(count) + " elements are no equal shares for " + std::to_string(size_) +
                                  " ranks: pad them");
    return count / static_cast<size_t>(size_);
  }
  int peer(int r) const {
    if (r < 0 || r >= size_) throw std::invalid_argument("there is no rank " + std::to_string(r));
    return r;
  }
  int other(int r) const {
    if (peer(r) == rank_) throw std::invalid_argument("rank " + std::to_string(r) + " is the caller itself");
    return r;
  }
};
}  // namespace weft::comm
