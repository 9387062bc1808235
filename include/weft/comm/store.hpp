// comm/store.hpp — where ranks meet: rank 0 answers on HOST:PORT and keeps a few short texts that ranks leave for each other (addresses, NCCL's id).
// The first thing a rank says is what it is. Another world size, version, model or graph is refused with both values, on every rank.
#pragma once
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <weft/comm/launch.hpp>
#include <weft/io/input_error.hpp>
#include <weft/version.hpp>

namespace weft::comm {
using std::chrono::milliseconds;
struct identity {  // must be equal on all ranks
  std::string model, graph;
  std::string version = WEFT_VERSION;
};

class tcp_store {
 public:
  tcp_store(launched const& at, identity const& me, milliseconds timeout) : at_(at), timeout_(timeout), me_(lines_of(at, me)) {
    if (at.rank == 0) listen();
    else join();
  }
  tcp_store(tcp_store const&) = delete;
  tcp_store& operator=(tcp_store const&) = delete;
  ~tcp_store() {
    {
      std::unique_lock lock(mutex_);
      if (!refused_.empty())  // whoever is there, or just coming, shall hear why
        changed_.wait_for(lock, milliseconds(1000), [&] { return told_ + 1 >= came_.size() && guests_.empty(); });
      closing_ = true;
      for (int fd : guests_) ::shutdown(fd, SHUT_RD);  // what is being answered still is
    }
    changed_.notify_all();
    if (listener_.joinable()) listener_.join();
    for (auto& t : hosts_) t.join();
    if (fd_ >= 0) ::close(fd_);
  }
  // This rank's address on the network that reaches rank 0.
  std::string const& address() const { return address_; }

  void set(std::string const& key, std::string const& value) {
    if (at_.rank == 0) return keep(key, value);
    ask("S" + key + '\n' + value);
  }
  std::string get(std::string const& key) {  // waits until somebody has set it
    if (at_.rank == 0) return wait(key);
    return ask("G" + key + '\n');
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::uint32_t most = 1 << 20;  // bytes of a text
  launched at_;
  milliseconds timeout_;
  std::vector<std::pair<std::string, std::string>> me_;
  std::string address_;
  int fd_ = -1;  // listens, or leads to rank 0

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> texts_;
  std::string refused_;  // why the group cannot form
  std::vector<int> guests_;
  std::vector<bool> came_;
  size_t told_ = 0;  // guests that have come and gone
  bool closing_ = false;
  std::list<std::thread> hosts_;
  std::thread listener_;

  static std::vector<std::pair<std::string, std::string>> lines_of(launched const& at, identity const& me) {
    return {{"world size", std::to_string(at.size)}, {"version", me.version}, {"model", me.model}, {"graph", me.graph}};
  }
  std::string where() const { return at_.host + ":" + std::to_string(at_.port); }

  template <class F> int first_address(F const& use) {  // 0, or the last errno
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (int const e = ::getaddrinfo(at_.host.c_str(), std::to_string(at_.port).c_str(), &hints, &found); e != 0)
      throw io::input_error("rendezvous " + where() + ": " + gai_strerror(e));
    int problem = ENOENT;
    for (addrinfo* a = found; a != nullptr && problem != 0; a = a->ai_next) {
      int const fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      problem = use(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
      if (problem == 0) fd_ = fd;
      else ::close(fd);
    }
    ::freeaddrinfo(found);
    if (problem != 0) return problem;
    sockaddr_storage mine = {};
    socklen_t size = sizeof mine;
    char text[NI_MAXHOST] = {};
    if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&mine), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&mine), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      address_ = text;
    return 0;
  }

  // ---- messages: length, then text
  static bool say(int fd, std::string const& text) {
    std::string out(4, '\0');
    auto const n = static_cast<std::uint32_t>(text.size());
    std::memcpy(out.data(), &n, 4);
    out += text;
    for (size_t done = 0; done < out.size();) {
      ssize_t const k = ::send(fd, out.data() + done, out.size() - done, MSG_NOSIGNAL);
      if (k <= 0) return false;
      done += static_cast<size_t>(k);
    }
    return true;
  }
  static bool hear(int fd, std::string& text) {
    auto const all = [&](char* to, size_t n) { return n == 0 || ::recv(fd, to, n, MSG_WAITALL) == static_cast<ssize_t>(n); };
    std::uint32_t n = 0;
    if (!all(reinterpret_cast<char*>(&n), 4) || n > most) return false;
    text.resize(n);
    return all(text.data(), n);
  }

  // ---- rank 0
  void listen() {
    came_.resize(static_cast<size_t>(at_.size));
    int const e = first_address([](int fd, sockaddr* a, socklen_t n) {
      int const on = 1;
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      return ::bind(fd, a, n) != 0 ? -1 : ::listen(fd, SOMAXCONN);
    });
    if (e != 0)
      throw io::input_error("rank 0 cannot answer at " + where() + ": " + std::strerror(e) +
                            "; another job may be using the port: choose another (--rendezvous HOST:PORT)");
    listener_ = std::thread([this] {
      pollfd p{fd_, POLLIN, 0};
      for (;;) {
        int const ready = ::poll(&p, 1, 20);
        std::scoped_lock const lock(mutex_);
        if (closing_) return;
        if (ready <= 0) continue;
        int const guest = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (guest < 0) continue;
        guests_.push_back(guest);
        hosts_.emplace_back([this, guest] { serve(guest); });
      }
    });
  }
  void serve(int guest) {
    std::string text;
    while (hear(guest, text) && !text.empty()) {
      std::string const rest = text.substr(1), key = rest.substr(0, rest.find('\n'));
      std::string answer = "+";
      try {
        if (text[0] == 'H') welcome(rest);
        else if (text[0] == 'S') keep(key, rest.substr(std::min(rest.size(), key.size() + 1)));
        else if (text[0] == 'G') answer += wait(key);
        else break;
      } catch (io::input_error const& e) { answer = std::string("-") + e.what(); }
      if (!say(guest, answer)) break;
    }
    std::scoped_lock const lock(mutex_);
    std::erase(guests_, guest);
    ::close(guest);
    ++told_;
    changed_.notify_all();
  }
  void welcome(std::string const& lines) {  // the rank, then what it is, a line each
    std::vector<std::string> its;
    for (size_t from = 0; from < lines.size();) {
      size_t const to = lines.find('\n', from);
      its.push_back(lines.substr(from, to - from));
      from = to == std::string::npos ? lines.size() : to + 1;
    }
    its.resize(me_.size() + 1);
    std::string problem;
    for (size_t i = 0; i < me_.size() && problem.empty(); ++i)
      if (its[i + 1] != me_[i].second)
        problem =
            "rank " + its[0] + " has " + me_[i].first + " " + its[i + 1] + ", rank 0 has " + me_[i].second + ": start all ranks alike";
    std::scoped_lock const lock(mutex_);
    if (problem.empty()) {
      auto const r = static_cast<size_t>(detail::whole_number("rank", its[0], 1, at_.size - 1));
      if (came_[r]) problem = "rank " + its[0] + " came twice: two jobs meet at " + where();
      came_[r] = true;
    }
    if (!refused_.empty()) throw io::input_error(refused_);
    if (problem.empty()) return;
    refused_ = problem;
    changed_.notify_all();
    throw io::input_error(problem);
  }
  void keep(std::string const& key, std::string const& value) {
    std::scoped_lock const lock(mutex_);
    texts_[key] = value;
    changed_.notify_all();
  }
  std::string wait(std::string const& key) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout_, [&] { return closing_ || !refused_.empty() || texts_.contains(key); });
    if (!refused_.empty()) throw io::input_error(refused_);
    auto const found = texts_.find(key);
    if (found != texts_.end()) return found->second;
    std::string missing;
    for (size_t r = 1; r < came_.size(); ++r)
      if (!came_[r]) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    refused_ = "rank 0 at " + where() + " waited " + std::to_string(timeout_.count()) + " ms for " +
               (missing.empty() ? key : "ranks that did not come: " + missing);
    changed_.notify_all();
    throw io::input_error(refused_);
  }

  // ---- the others
  void be_patient(int fd) const {
    auto const patience = timeout_ + milliseconds(1000);  // rank 0 waits for others meanwhile, and says so first
    timeval const t{patience.count() / 1000, patience.count() % 1000 * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
  }
  void join() {
    auto const deadline = clock::now() + timeout_;
    for (int e; (e = first_address([&](int fd, sockaddr* a, socklen_t n) { return be_patient(fd), ::connect(fd, a, n); })) != 0;) {
      if (clock::now() > deadline)
        throw io::input_error("rank " + std::to_string(at_.rank) + " found nobody at " + where() + " in " +
                              std::to_string(timeout_.count()) + " ms (" + std::strerror(e) + "): is rank 0 there?");
      std::this_thread::sleep_for(milliseconds(20));
    }
    std::string hello = "H" + std::to_string(at_.rank);
    for (auto const& [name, value] : me_) hello += "\n" + value;
    ask(hello);
  }
  std::string ask(std::string const& text) {
    std::string answer;
    if (!say(fd_, text) || !hear(fd_, answer) || answer.empty()) throw io::input_error("rank 0 at " + where() + " no longer answers");
    if (answer[0] == '-') throw io::input_error(answer.substr(1));
    return answer.substr(1);
  }
};
}  // namespace weft::comm
