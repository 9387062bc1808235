// comm/gloo.hpp — ranks that are processes, over TCP by Gloo (libgloo-dev; link with -lgloo). Addresses are exchanged through a store: rank 0's
// (store.hpp), or one of Gloo's own.
#pragma once
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <csignal>
#include <memory>
#include <vector>

#include <weft/comm/communicator.hpp>
#include <weft/comm/local.hpp>
#include <weft/comm/store.hpp>

namespace weft::comm {
// Whose order a sum over ranks has: Gloo's (rings; halving for small ones), which changes with the rank count, or reduce.hpp's tree.
enum class sum_order { fastest, fixed_tree };

struct gloo_options {
  milliseconds timeout = std::chrono::minutes(10);  // of joining, and of every collective: as long as the slowest rank may be behind
  std::string address = "127.0.0.1";                // of this rank's network interface
  sum_order order = sum_order::fastest;
};

class gloo_communicator final : public communicator {
 public:
  // Returns when all ranks have joined.
  gloo_communicator(int rank, int size, ::gloo::rendezvous::Store& store, gloo_options const& o)
      : communicator(rank, size, o.timeout), order_(o.order), context_(std::make_shared<::gloo::rendezvous::Context>(rank, size)) {
    std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to sockets of peers that are gone: an error then, not the end of this process
    ::gloo::transport::tcp::attr attribute(o.address.c_str());
    auto device = ::gloo::transport::tcp::CreateDevice(attribute);
    context_->setTimeout(o.timeout);
    try {
      context_->connectFullMesh(store, device);
    } catch (io::input_error const&) { throw; } catch (std::exception const& e) {
      throw error({rank, size, "join", 0}, e.what());
    }
  }

 private:
  sum_order order_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
  std::vector<std::byte> received_;                      // what peers sent of the share that is added up here
  static constexpr size_t most_bytes = size_t{1} << 20;  // of one message of such a sum
  static constexpr size_t ring_bytes = size_t{8} << 20;  // from here on a ring is faster than halving

  using bytes = std::byte;
  size_t ranks() const { return static_cast<size_t>(size()); }
  size_t me() const { return static_cast<size_t>(rank()); }
  std::uint32_t tag() const { return static_cast<std::uint32_t>(collectives()); }
  std::uint64_t slot() const { return ::gloo::Slot::build(0x40, 0); }  // a prefix that Gloo's collectives do not use

  void all_reduce_bytes(void* x, size_t count, reduction r) override {
    if (count == 0) return;
    if (order_ == sum_order::fixed_tree) {
      auto const begin = [&](size_t k) { return count * k / ranks(); };
      add_up(x, begin, r);
      std::vector<size_t> counts(ranks());
      for (size_t k = 0; k < ranks(); ++k) counts[k] = (begin(k + 1) - begin(k)) * bytes_of(r.of);
      return gather(x, counts);
    }
    ::gloo::AllreduceOptions o(context_);
    o.setAlgorithm(count * bytes_of(r.of) < ring_bytes ? ::gloo::AllreduceOptions::Algorithm::BCUBE
                                                       : ::gloo::AllreduceOptions::Algorithm::RING);
    if (bytes_of(r.of) == 4) o.setOutput(static_cast<std::uint32_t*>(x), count);
    else o.setOutput(static_cast<std::uint64_t*>(x), count);
    o.setReduceFunction(combine_of(r));
    o.setTag(tag());
    ::gloo::allreduce(o);
  }
  // Gloo has no reduce-scatter of this form: shares go straight to their ranks, which add them up in the tree's order.
  void reduce_scatter_bytes(void* x, size_t count, reduction r) override {
    add_up(x, [&](size_t k) { return count * k; }, r);
  }
  // Elements [begin(k), begin(k + 1)) of everyone's x are added up on rank k.
  template <class Begin> void add_up(void* x, Begin const& begin, reduction r) {
    size_t const width = bytes_of(r.of), most = most_bytes / width;
    auto const left = [&](size_t k, size_t done) {
      return std::min(most, begin(k + 1) - begin(k) - std::min(done, begin(k + 1) - begin(k)));
    };
    size_t longest = 0;
    for (size_t k = 0; k < ranks(); ++k) longest = std::max(longest, begin(k + 1) - begin(k));
    received_.resize(ranks() * std::min(longest, most) * width);
    auto const mine = context_->createUnboundBuffer(x, begin(ranks()) * width);
    auto const theirs = context_->createUnboundBuffer(received_.data(), received_.size());
    std::vector<void const*> from(ranks());
    for (size_t done = 0; done < longest; done += most) {
      size_t const n = left(me(), done);
      size_t sends = 0, receives = 0;
      for (size_t step = 1; step < ranks(); ++step) {  // everyone begins with the next rank
        size_t const to = (me() + step) % ranks(), source = (me() + ranks() - step) % ranks();
        if (n > 0) theirs->recv(static_cast<int>(source), slot(), source * n * width, n * width), ++receives;
        if (left(to, done) > 0) mine->send(static_cast<int>(to), slot(), (begin(to) + done) * width, left(to, done) * width), ++sends;
      }
      for (; receives > 0; --receives) theirs->waitRecv(context_->getTimeout());
      bytes* const to = static_cast<bytes*>(x) + (begin(me()) + std::min(done, begin(me() + 1) - begin(me()))) * width;
      for (size_t k = 0; k < ranks(); ++k) from[k] = k == me() ? to : received_.data() + k * n * width;
      tree_reduce(r, from, to, n);
      for (; sends > 0; --sends) mine->waitSend(context_->getTimeout());
    }
  }
  void all_gather_bytes(void* x, size_t n) override { gather(x, std::vector<size_t>(ranks(), n)); }
  void gather(void* x, std::vector<size_t> const& counts) {  // counts: bytes of each rank's share
    ::gloo::AllgathervOptions o(context_);
    o.setOutput(static_cast<char*>(x), counts);
    o.setTag(tag());
    ::gloo::allgatherv(o);
  }
  void broadcast_bytes(void* x, size_t n, int root) override {
    if (n == 0) return;
    ::gloo::BroadcastOptions o(context_);
    o.setOutput(static_cast<char*>(x), n);
    o.setRoot(root);
    o.setTag(tag());
    ::gloo::broadcast(o);
  }
  void all_to_all_bytes(void const* from, void* to, size_t n) override {
    if (n == 0) return;
    ::gloo::AlltoallOptions o(context_);
    o.setInput(static_cast<char*>(const_cast<void*>(from)), n * ranks());
    o.setOutput(static_cast<char*>(to), n * ranks());
    o.setTag(tag());
    ::gloo::alltoall(o);
  }
  void send_bytes(void const* x, size_t n, int to) override {
    auto const buffer = context_->createUnboundBuffer(const_cast<void*>(x), n);
    buffer->send(to, slot());
    buffer->waitSend(context_->getTimeout());
  }
  void receive_bytes(void* x, size_t n, int from) override {
    auto const buffer = context_->createUnboundBuffer(x, n);
    buffer->recv(from, slot());
    buffer->waitRecv(context_->getTimeout());
  }
  void wait_for_all() override {
    ::gloo::BarrierOptions o(context_);
    o.setTag(tag());
    ::gloo::barrier(o);
  }
};

// What a launcher started, as a group: returns when all have come and are alike. The only rank of a group needs no network.
inline std::unique_ptr<communicator> join(launched const& at, identity const& me, gloo_options o) {
  if (at.alone()) return self();
  struct adapter final : ::gloo::rendezvous::Store {
    tcp_store store;
    adapter(launched const& l, identity const& i, milliseconds t) : store(l, i, t) {}
    void set(std::string const& key, std::vector<char> const& data) override { store.set(key, std::string(data.begin(), data.end())); }
    std::vector<char> get(std::string const& key) override {
      std::string const text = store.get(key);
      return {text.begin(), text.end()};
    }
    void wait(std::vector<std::string> const& keys) override {
      for (auto const& key : keys) store.get(key);
    }
    void wait(std::vector<std::string> const& keys, milliseconds const&) override { wait(keys); }
  } meeting(at, me, o.timeout);
  o.address = meeting.store.address();
  auto group = std::make_unique<gloo_communicator>(at.rank, at.size, meeting, o);
  group->barrier();  // nobody needs rank 0's store any more
  return group;
}
}  // namespace weft::comm
