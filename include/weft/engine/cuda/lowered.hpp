// engine/cuda/lowered.hpp — a program on one GPU. The host walks the plan in its order. A stage that takes the executor is captured into a
// graph the second time that it runs with the same arguments, and replayed from then on; a stage that takes none runs on the host, on
// mirrors of its buffers in pinned memory. A mirror is copied up or down only when the other side needs what this side wrote, so the host
// stages of a step (advantages, packing) run while the device still works on what came before.
//
// A device stage in a loop sees a slice at the same address in every turn: its window, filled before and written back after.
#pragma once
#include <memory>
#include <vector>
#include <weft/bind.hpp>
#include <weft/engine/cuda/device.hpp>

namespace weft::detail {
struct pinned_free {
  void operator()(std::byte* p) const { cudaFreeHost(p); }
};
struct device_free {
  void operator()(std::byte* p) const { cudaFree(p); }
};

class lowered {
 public:
  lowered(program& p, cuda_device& d) : p_{p}, device_{d}, buffers_(p.buffer_count), buffer_of_(p.r, nowhere), windows_(p.r) {
    for (size_t r = 0; r < p.r; ++r) {
      if (!has_bytes(p.rows[r]) || is_state(p.rows[r]) || on_host_only(r)) continue;
      buffer_of_[r] = index(p.buffer_of(r));
      if (needs_mirror(r)) mirrored(buffer_of_[r]);
    }
    for (size_t r = 0; r < p.r; ++r) {
      if (buffer_of_[r] != nowhere && buffers_[buffer_of_[r]].mirror) p.seen[r] = buffers_[buffer_of_[r]].mirror.get();
      if (by(p.rows[r].node) == runner::device && is_sliced(r)) {
        std::byte* at = nullptr;
        kernels::check(cudaMalloc(&at, aligned(slice_bytes(r))), "window of a loop");
        windows_[r].reset(at);
      }
      if (has_bytes(p.rows[r]) && is_state(p.rows[r]) && !p.nodes[p.rows[r].node].pinned && by(p.rows[r].node) == runner::host &&
          !on_host_only(r)) {
        refusal e{};
        (e << "weft::bind: on a GPU a stage that touches state takes the executor: ").name(p.rows[r].at->name);
        throw e;
      }
    }
    kernels::check(cudaEventCreateWithFlags(&caught_up_, cudaEventDisableTiming), "event");
  }
  lowered(lowered const&) = delete;
  ~lowered() {
    cudaEventDestroy(caught_up_);
    for (auto& b : buffers_)
      if (b.sent) cudaEventDestroy(b.sent);
    for (auto& m : marks_) cudaEventDestroy(m);
  }
  program const& of() const { return p_; }

  // on: the executor, as stages get it. seconds: per node, or null.
  void run(void* on, kernels::cuda_context& context, double* seconds) {
    on_ = on, context_ = &context, seconds_ = seconds, timed_.clear();
    for (size_t n = 0; n < p_.n; ++n) p_.turn[n] = 0;
    for (auto& b : buffers_) b.on_host = b.on_device = false;
    for (size_t r = 0; r < p_.written_rows; ++r)  // what the host fed
      if (p_.nodes[p_.rows[r].node].pinned && p_.rows[r].how == access::out && buffer_of_[r] != nowhere) wrote_on_host(r);
    nodes(0, p_.n);
    wait();
    for (size_t i = 0; i < timed_.size(); ++i) {
      float ms = 0;
      kernels::check(cudaEventElapsedTime(&ms, marks_[2 * i], marks_[2 * i + 1]), "time");
      seconds[timed_[i]] += 1e-3 * double(ms);
    }
  }

 private:
  struct shared_buffer {
    std::unique_ptr<std::byte, pinned_free> mirror;
    bool on_host = false, on_device = false;  // who has what was written last
    cudaEvent_t sent{};                       // after the last copy to the device, if `sending`
    bool sending = false;
  };

  runner by(size_t n) const { return n < p_.written_nodes ? p_.by[n] : runner::host; }
  bool on_host_only(size_t r) const { return p_.rows[r].at->devices == tag<host_memory>; }
  bool needs_mirror(size_t r) const {
    auto const& n = p_.nodes[p_.rows[r].node];
    return n.pinned || n.loop || n.what != move::none || by(p_.rows[r].node) == runner::host;
  }
  bool is_sliced(size_t r) const {
    auto const& l = p_.lines[r];
    for (size_t i = 0; has_bytes(p_.rows[r]) && i < l.cut_count; ++i)
      if (!l.cuts[i].one_slice) return true;
    return false;
  }
  size_t slice_bytes(size_t r) const { return p_.lines[r].whole; }  // no slice is larger than all of them
  void mirrored(index b) {
    auto& m = buffers_[b];
    if (m.mirror || p_.bytes[b] == 0) return;
    m.mirror.reset(static_cast<std::byte*>(device_.allocate(p_.bytes[b], true)));
    kernels::check(cudaEventCreateWithFlags(&m.sent, cudaEventDisableTiming), "event");
  }
  std::byte* device_address(index b) const {
    auto const& l = p_.lines[p_.buffers[b].row];
    return l.base;
  }

  // ---- copies between the two sides ------------------------------------------------------------------------
  void upload(index b) {
    auto& m = buffers_[b];
    if (m.on_device || !m.mirror) return;
    kernels::check(cudaMemcpyAsync(device_address(b), m.mirror.get(), p_.bytes[b], cudaMemcpyHostToDevice, context_->stream), "upload");
    kernels::check(cudaEventRecord(m.sent, context_->stream), "event");
    m.on_device = m.sending = true;
    ++device_.counts.uploads;
  }
  bool download(index b) {  // true: it is on its way
    auto& m = buffers_[b];
    if (m.on_host || !m.mirror) return false;
    kernels::check(cudaMemcpyAsync(m.mirror.get(), device_address(b), p_.bytes[b], cudaMemcpyDeviceToHost, context_->stream), "download");
    m.on_host = true;
    ++device_.counts.downloads;
    return true;
  }
  void wait() {
    kernels::check(cudaEventRecord(caught_up_, context_->stream), "event");
    kernels::check(cudaEventSynchronize(caught_up_), "wait for the device");
    ++device_.counts.waits;
    behind_ = false;
  }
  void read_on_host(size_t r) {
    if (buffer_of_[r] != nowhere && download(buffer_of_[r])) behind_ = true;
  }
  void wrote_on_host(size_t r) {
    if (buffer_of_[r] == nowhere) return;
    auto& m = buffers_[buffer_of_[r]];
    m.on_host = true, m.on_device = false;
  }
  void may_write_on_host(size_t r) {  // the copy of what was there before must have left
    if (buffer_of_[r] == nowhere) return;
    auto& m = buffers_[buffer_of_[r]];
    if (!m.sending) return;
    kernels::check(cudaEventSynchronize(m.sent), "wait for an upload");
    m.sending = false;
  }
  void see_from_host(size_t r) {
    auto& s = p_.slots[r];
    if (buffer_of_[r] == nowhere || !s.data) return;
    if (std::byte* const mirror = buffers_[buffer_of_[r]].mirror.get())
      s.data = mirror + (static_cast<std::byte*>(s.data) - device_address(buffer_of_[r]));
  }
  static bool reads(access how) { return how == access::in || how == access::inout; }
  static bool writes(access how) { return how == access::out || how == access::inout; }

  // ---- nodes -----------------------------------------------------------------------------------------------
  template <class F> void each_row(size_t n, F const& f) {
    for (size_t r = p_.nodes[n].first, end = r + p_.nodes[n].rows; r < end; ++r)
      if (has_bytes(p_.rows[r])) f(r, p_.rows[r].how);
  }
  void host_stage(size_t n) {
    each_row(n, [&](size_t r, access how) {
      if (reads(how)) read_on_host(r);
    });
    if (behind_) wait();
    each_row(n, [&](size_t r, access how) {
      if (writes(how)) may_write_on_host(r);
    });
    double const start = now();
    p_.arguments(n, 0);
    each_row(n, [&](size_t r, access) { see_from_host(r); });
    cpu host{};
    p_.run[n](&host, p_.slots.at + p_.nodes[n].first);
    each_row(n, [&](size_t r, access how) {
      if (writes(how)) wrote_on_host(r);
    });
    if (seconds_) seconds_[n] += now() - start;
    ++device_.counts.host_stages;
  }
  std::string key_of(size_t n) const {  // all that decides what is enqueued: stage, addresses, sizes, settings
    auto const& me = p_.nodes[n];
    std::string k = kernels::key("stage", &p_, n, p_.run[n]);
    k.append(reinterpret_cast<char const*>(p_.slots.at + me.first), me.rows * sizeof(slot));
    for (size_t r = me.first; r < size_t(me.first + me.rows); ++r)
      if (p_.rows[r].how == access::setting) k.append(static_cast<char const*>(p_.slots[r].data), p_.rows[r].at->element);
    return k + kernels::key("", context_->size_class);
  }
  u64 size_class(size_t n) {  // what a port says that this stage reads and the host wrote; 0: nothing
    for (size_t r = p_.nodes[n].first, end = r + p_.nodes[n].rows; r < end; ++r) {
      if (!p_.rows[r].at->size_class || buffer_of_[r] == nowhere || !buffers_[buffer_of_[r]].on_host) continue;
      p_.aim(r, 0);
      see_from_host(r);
      return p_.rows[r].at->size_class(p_.slots[r].data);
    }
    return 0;
  }
  void device_stage(size_t n) {
    each_row(n, [&](size_t r, access how) {
      if (reads(how) && buffer_of_[r] != nowhere) upload(buffer_of_[r]);
    });
    mark(2 * timed_.size());
    context_->size_class = size_class(n);
    p_.arguments(n, 0);
    struct window {
      size_t row, bytes;
      void* slice;
    };
    std::vector<window> open;
    each_row(n, [&](size_t r, access how) {
      if (!windows_[r]) return;
      auto& s = p_.slots[r];
      size_t bytes = p_.element(r);
      for (size_t k = 0; k < p_.rows[r].at->rank; ++k) bytes *= s.dims[k];
      open.push_back({r, bytes, s.data});
      if (how != access::out) copy(windows_[r].get(), s.data, bytes);
      s.data = windows_[r].get();
    });
    auto const call = [&] { p_.run[n](on_, p_.slots.at + p_.nodes[n].first); };
    if (by(n) == runner::driven) call();
    else kernels::replay(*context_, key_of(n), call);
    for (auto const& w : open)
      if (p_.rows[w.row].how != access::in && p_.rows[w.row].how != access::state) copy(w.slice, windows_[w.row].get(), w.bytes);
    each_row(n, [&](size_t r, access how) {
      if (!writes(how) || buffer_of_[r] == nowhere) return;
      auto& b = buffers_[buffer_of_[r]];
      b.on_device = true, b.on_host = false;
    });
    mark(2 * timed_.size() + 1);
    if (seconds_) timed_.push_back(n);
    ++device_.counts.stages;
  }
  void copy(void* to, void const* from, size_t bytes) {
    if (bytes) kernels::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context_->stream), "copy of a slice");
  }
  void mark(size_t i) {
    if (!seconds_) return;
    while (marks_.size() <= i) {
      marks_.emplace_back();
      kernels::check(cudaEventCreate(&marks_.back()), "event");
    }
    kernels::check(cudaEventRecord(marks_[i], context_->stream), "event");
  }
  void move_node(size_t n) {  // between the memory of the host and that of the device
    size_t const a = p_.nodes[n].first, b = a + 1u;
    if (!on_host_only(a)) read_on_host(a);
    if (behind_) wait();
    may_write_on_host(b);
    p_.arguments(n, 0);
    see_from_host(a), see_from_host(b);
    size_t bytes = p_.element(b);
    for (size_t k = 0; k < p_.rows[b].at->rank; ++k) bytes *= p_.slots[b].dims[k];
    std::memcpy(p_.slots[b].data, p_.slots[a].data, bytes);
    wrote_on_host(b);
  }
  i32 count_of(size_t n) {  // what a loop's port says
    size_t const r = p_.nodes[n].first;
    read_on_host(r);
    if (behind_) wait();
    p_.aim(r, 0);
    see_from_host(r);
    return *static_cast<i32 const*>(p_.slots[r].data);
  }
  void loop(size_t n, size_t body, size_t end) {
    auto const& me = p_.nodes[n];
    size_t count = p_.times[n];
    if (me.rows && !me.until) {
      i32 const said = count_of(n);
      if (said < 0 || size_t(said) > count) {
        refusal r{};
        (r << "weft::step: ").name(p_.rows[me.first].at->name) << " says " << said << " turns of ";
        r.name(me.name) << ", which has " << count << " at most";
        throw r;
      }
      count = size_t(said);
    }
    for (p_.turn[n] = 0; p_.turn[n] < count; ++p_.turn[n]) {
      nodes(body, end);
      if (me.until && count_of(n)) break;
    }
    p_.turn[n] = 0;
  }
  void nodes(size_t i, size_t end) {
    for (size_t next; i < end; i = next) {
      size_t const n = p_.order[i];
      auto const& me = p_.nodes[n];
      next = me.loop ? p_.body_end(i) : i + 1;
      if (me.loop) loop(n, i + 1, next);
      else if (me.pinned)
        each_row(n, [&](size_t r, access how) {
          if (how == access::in) read_on_host(r);  // kept: what the host sees after the step
        });
      else if (me.what == move::idle) continue;
      else if (me.what != move::none) move_node(n);
      else if (by(n) == runner::host) host_stage(n);
      else device_stage(n);
    }
  }

  program& p_;
  cuda_device& device_;
  std::vector<shared_buffer> buffers_;
  std::vector<index> buffer_of_;  // per row; nowhere: state, setting, or memory of the host alone
  std::vector<std::unique_ptr<std::byte, device_free>> windows_;
  std::vector<cudaEvent_t> marks_;  // before and after each device stage of a step that is timed,
  std::vector<size_t> timed_;       // and which it was
  cudaEvent_t caught_up_{};
  bool behind_ = false;  // copies to the host are on their way
  void* on_ = nullptr;
  kernels::cuda_context* context_ = nullptr;
  double* seconds_ = nullptr;
};
}  // namespace weft::detail
