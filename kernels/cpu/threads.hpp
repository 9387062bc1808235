// threads.hpp — a fork-join pool for loops of microseconds, and parallel_for on it.
//
// The caller is one of the threads. A job is cut into chunks that the threads take from a counter, so a busy core only does less of it; the
// caller never waits for a thread that has not begun. A waiting thread spins shortly, then sleeps. Nothing is allocated after construction.
// Called from within a job, or while another caller uses the pool, a loop runs on the calling thread.
#pragma once
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <new>

#include <weft/element.hpp>
#include <weft/kernels/context.hpp>

namespace weft::kernels {

class threads {
 public:
  using body = void (*)(void const* job, size_t begin, size_t end);

  explicit threads(size_t count = 0)  // 0: as many as this process may use
      : count_(count ? count : available()), workers_(new pthread_t[count_]) {
    for (started_ = 1; started_ < count_; ++started_)
      if (pthread_create(
              &workers_[started_], nullptr,
              [](void* self) -> void* {
                static_cast<threads*>(self)->work();
                return nullptr;
              },
              this))
        break;  // fewer threads than asked for: the same results, later
  }
  ~threads() {
    state_.fetch_or(stop);
    state_.notify_all();
    for (size_t i = 1; i < started_; ++i) pthread_join(workers_[i], nullptr);
    delete[] workers_;
  }
  threads(threads const&) = delete;
  threads& operator=(threads const&) = delete;

  size_t size() const { return started_; }

  static size_t available() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
  }

  // f(job, begin, end) over [0, n) in chunks of `chunk`; returns when all are done. f must not throw.
  void run(body f, void const* job, size_t n, size_t chunk) {
    if (started_ == 1 || n <= chunk || busy_.test_and_set(std::memory_order_acquire)) return f(job, 0, n);
    body_ = f, job_ = job, n_ = n, chunk_ = chunk;
    next_.store(0, std::memory_order_relaxed);
    state_.fetch_add(turn | open);
    state_.notify_all();
    take();
    u32 seen = state_.fetch_and(~open) & ~open;
    for (size_t spin = 0; seen & active; seen = state_.load(std::memory_order_acquire)) ++spin > patience ? state_.wait(seen) : pause();
    busy_.clear(std::memory_order_release);
  }

 private:
  // state: bits 0-14 how many workers are inside the job, 15 the job may be joined, 16 the pool ends, 17-31 number of the job
  static constexpr u32 active = 0x7fff, open = 0x8000, stop = 0x10000, turn = 0x20000;
  static constexpr size_t patience = 4000;  // looks before sleeping: some 20 microseconds

  void take() {
    for (size_t begin; (begin = next_.fetch_add(chunk_, std::memory_order_relaxed)) < n_;)
      body_(job_, begin, begin + chunk_ < n_ ? begin + chunk_ : n_);
  }
  void work() {
    u32 done = 0;  // number of the job last worked on
    for (size_t spin = 0;;) {
      u32 s = state_.load(std::memory_order_acquire);
      if (s & stop) return;
      if ((s & open) && (s & ~(active | open)) != done) {
        if (!state_.compare_exchange_weak(s, s + 1)) continue;
        done = s & ~(active | open);
        take();
        s = state_.fetch_sub(1) - 1;
        if (!(s & (open | active))) state_.notify_all();  // the caller may be waiting for the last one
        spin = 0;
      } else if (++spin > patience) {
        state_.wait(s);
        spin = 0;
      } else {
        pause();
      }
    }
  }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  size_t count_, started_ = 1;
  pthread_t* workers_;
  body body_ = nullptr;
  void const* job_ = nullptr;
  size_t n_ = 0, chunk_ = 0;
  std::atomic_flag busy_;
  alignas(64) std::atomic<size_t> next_ = 0;
  alignas(64) std::atomic<u32> state_ = 0;
};

// f(begin, end) on disjoint ranges that cover [0, n), none (but the last) below `grain`. Results must not depend on the cut.
template <class F> void parallel_for(cpu_context& on, size_t n, size_t grain, F const& f) {
  if (n == 0) return;
  size_t const parts = on.pool ? 4 * on.pool->size() : 1, least = grain ? grain : 1;
  if (parts == 1 || n <= least) return f(size_t{0}, n);
  size_t const even = (n + parts - 1) / parts, chunk = (even + least - 1) / least * least;
  on.pool->run([](void const* job, size_t begin, size_t end) { (*static_cast<F const*>(job))(begin, end); }, &f, n, chunk);
}
}  // namespace weft::kernels
