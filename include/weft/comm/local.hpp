// comm/local.hpp — ranks that are threads of one process, and the group of one. Ranks read each other's memory between two barriers; all
// that a distributed run can do wrong, a wrong collective, another size, a rank that left or does not come, is found here at once.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <weft/comm/communicator.hpp>

namespace weft::comm {
class local_group {
 public:
  explicit local_group(int size) : posts_(static_cast<size_t>(size)), letters_(posts_.size() * posts_.size()) {}

 private:
  friend class local_communicator;
  struct post {  // what a rank brings to a collective
    std::string_view what;
    void const* from = nullptr;
    size_t bytes = 0;
    std::string detail = {};  // root, or operation
    std::uint64_t turn = 0;   // how many posts this rank has made
    bool gone = false;
  };
  struct letter {
    void const* data;
    size_t bytes;
    bool taken = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<post> posts_;
  std::vector<std::deque<letter*>> letters_;  // [from * size + to]
  size_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::string broken_;  // why no collective can end any more
};

class local_communicator final : public communicator {
 public:
  local_communicator(std::shared_ptr<local_group> group, int rank, milliseconds timeout)
      : communicator(rank, static_cast<int>(group->posts_.size()), timeout), group_(std::move(group)) {}
  ~local_communicator() override {  // whoever still waits for this rank is told
    std::scoped_lock const lock(group_->mutex_);
    mine().gone = true;
    group_->changed_.notify_all();
  }

 private:
  std::shared_ptr<local_group> group_;
  using bytes = std::byte;
  size_t ranks() const { return group_->posts_.size(); }
  size_t me() const { return static_cast<size_t>(rank()); }
  local_group::post& mine() { return group_->posts_[me()]; }
  bytes const* of(size_t r) const { return static_cast<bytes const*>(group_->posts_[r].from); }

  // Waits under the lock until `done`; a missing rank ends it for everyone.
  template <class F, class G> void wait(std::unique_lock<std::mutex>& lock, F const& done, G const& missing) {
    auto const deadline = std::chrono::steady_clock::now() + timeout();
    while (!done()) {
      if (!group_->broken_.empty()) throw std::runtime_error(group_->broken_);
      std::string const who = missing(true);
      if (!who.empty()) fail(who + " left");
      if (group_->changed_.wait_until(lock, deadline) == std::cv_status::timeout && !done())
        fail("no answer from " + missing(false) + " in " + std::to_string(timeout().count()) + " ms");
    }
  }
  [[noreturn]] void fail(std::string const& why) {
    if (group_->broken_.empty()) group_->broken_ = why;
    group_->changed_.notify_all();
    throw std::runtime_error(group_->broken_);
  }
  // Posts what this rank brings and waits for everyone's.
  void meet(local_group::post p) {
    std::unique_lock lock(group_->mutex_);
    if (!group_->broken_.empty()) throw std::runtime_error(group_->broken_);
    p.turn = mine().turn;
    mine() = std::move(p);
    meet(lock);
  }
  void meet() {  // all have done the last part; posts stay, others may be reading them
    std::unique_lock lock(group_->mutex_);
    meet(lock);
  }
  void meet(std::unique_lock<std::mutex>& lock) {
    std::uint64_t const round = group_->round_;
    ++mine().turn;
    if (++group_->arrived_ < ranks()) return wait(lock, [&] { return group_->round_ != round; }, [&](bool gone) { return absent(gone); });
    group_->arrived_ = 0;
    for (auto const& q : group_->posts_)
      if (q.what != mine().what || q.bytes != mine().bytes || q.detail != mine().detail)
        fail("rank " + std::to_string(&q - group_->posts_.data()) + " called " + text(q) + " where rank " + std::to_string(rank()) +
             " called " + text(mine()));
    ++group_->round_;
    group_->changed_.notify_all();
  }
  std::string absent(bool gone) const {  // ranks that have not posted as often as this one; only those that left, if `gone`
    std::string names;
    for (size_t r = 0; r < ranks(); ++r)
      if (group_->posts_[r].turn < group_->posts_[me()].turn && (!gone || group_->posts_[r].gone))
        names += (names.empty() ? "rank " : ", rank ") + std::to_string(r);
    return names;
  }
  static std::string text(local_group::post const& p) {
    return std::string(p.what) + " of " + std::to_string(p.bytes) + " bytes" + p.detail;
  }
  static std::string code(reduction r) { return ", " + text_of(r); }

  void reduce_share(void* x, size_t begin, size_t count, reduction r) {
    std::vector<void const*> from(ranks());
    size_t const offset = begin * bytes_of(r.of);
    for (size_t k = 0; k < ranks(); ++k) from[k] = of(k) + offset;
    tree_reduce(r, from, static_cast<bytes*>(x) + offset, count);  // nobody else reads this share of mine
  }
  void all_reduce_bytes(void* x, size_t count, reduction r) override {
    meet({"all_reduce", x, count * bytes_of(r.of), code(r)});
    auto const begin = [&](size_t k) { return count * k / ranks(); };
    reduce_share(x, begin(me()), begin(me() + 1) - begin(me()), r);
    meet();
    for (size_t k = 0; k < ranks(); ++k)
      if (k != me())
        copy(static_cast<bytes*>(x) + begin(k) * bytes_of(r.of), of(k) + begin(k) * bytes_of(r.of),
             (begin(k + 1) - begin(k)) * bytes_of(r.of));
    meet();
  }
  void reduce_scatter_bytes(void* x, size_t count, reduction r) override {
    meet({"reduce_scatter", x, count * bytes_of(r.of), code(r)});
    reduce_share(x, me() * count, count, r);
    meet();
  }
  void all_gather_bytes(void* x, size_t n) override {
    meet({"all_gather", x, n});
    for (size_t k = 0; k < ranks(); ++k)
      if (k != me()) copy(static_cast<bytes*>(x) + k * n, of(k) + k * n, n);
    meet();
  }
  void broadcast_bytes(void* x, size_t n, int root) override {
    meet({"broadcast", x, n, " from rank " + std::to_string(root)});
    if (root != rank()) copy(x, of(static_cast<size_t>(root)), n);
    meet();
  }
  void all_to_all_bytes(void const* from, void* to, size_t n) override {
    meet({"all_to_all", from, n});
    for (size_t k = 0; k < ranks(); ++k) copy(static_cast<bytes*>(to) + k * n, of(k) + me() * n, n);
    meet();
  }
  void wait_for_all() override { meet({"barrier"}); }

  void send_bytes(void const* x, size_t n, int to) override {
    local_group::letter l{x, n};
    std::unique_lock lock(group_->mutex_);
    auto& box = group_->letters_[me() * ranks() + static_cast<size_t>(to)];
    box.push_back(&l);
    group_->changed_.notify_all();
    try {
      wait(lock, [&] { return l.taken; }, [&](bool gone) { return one(to, gone); });
    } catch (...) {
      std::erase(box, &l);
      throw;
    }
  }
  void receive_bytes(void* x, size_t n, int from) override {
    std::unique_lock lock(group_->mutex_);
    auto& box = group_->letters_[static_cast<size_t>(from) * ranks() + me()];
    wait(lock, [&] { return !box.empty(); }, [&](bool gone) { return one(from, gone); });
    local_group::letter& l = *box.front();
    if (l.bytes != n)
      fail("rank " + std::to_string(from) + " sent " + std::to_string(l.bytes) + " bytes where rank " + std::to_string(rank()) + " takes " +
           std::to_string(n));
    copy(x, l.data, n);
    l.taken = true;
    box.pop_front();
    group_->changed_.notify_all();
  }
  std::string one(int r, bool gone) const {
    return !gone || group_->posts_[static_cast<size_t>(r)].gone ? "rank " + std::to_string(r) : "";
  }
  static void copy(void* to, void const* from, size_t n) {
    if (n != 0) std::memcpy(to, from, n);
  }
};

inline std::unique_ptr<communicator> self() {
  return std::make_unique<local_communicator>(std::make_shared<local_group>(1), 0, std::chrono::hours(1));
}
}  // namespace weft::comm
