// questions.hpp — arithmetic questions, the answers of a pupil who often forgets the carry, and a split that keeps some out of sight.
// Everything is a function of the settings: the same seed gives the same files on every machine.
#pragma once
#include <weft/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace arithmetic {

struct question {
  std::int64_t a, b;
  char op;  // + - *

  std::int64_t answer() const { return op == '+' ? a + b : op == '-' ? a - b : a * b; }

  // Column by column without carry or borrow: 58+43 -> 91, 97+83 -> 70, 42-17 -> 35. A sum keeps its columns (55+55 -> 00). Products have no slip.
  std::string slip() const {
    if (op == '*') return fmt::format("{}", answer());
    std::string columns;
    for (auto x = a, y = b; x > 0 || y > 0 || columns.empty(); x /= 10, y /= 10)
      columns += static_cast<char>('0' + (op == '+' ? x % 10 + y % 10 : x % 10 - y % 10 + 10) % 10);
    if (op == '-')
      while (columns.size() > 1 && columns.back() == '0') columns.pop_back();
    return {columns.rbegin(), columns.rend()};
  }

  // {a}, {op} and {b} in form are replaced
  std::string text(std::string const& form) const {
    try {
      return fmt::format(fmt::runtime(form), fmt::arg("a", a), fmt::arg("op", op), fmt::arg("b", b));
    } catch (fmt::format_error const& e) {
      weft::io::refuse("--form {}: {}; expected a text with {{a}}, {{op}} and {{b}}", weft::io::show(form), e.what());
    }
  }
};

struct settings {
  std::vector<std::string> kinds{"add", "sub"};  // add, sub (never below zero), mul
  std::int64_t least = 10, most = 99;            // of both operands
  std::string form = "{a}{op}{b}=";
  std::int64_t seed = 1;
  std::int64_t train = 0, val = 512;  // questions; train 0: all that are left
  std::int64_t repeats = 8;           // rows a training question in sft.jsonl, each by the pupil
  double slip = 0.65;                 // how often the pupil forgets the carry
};

// splitmix64: a fixed stream of 64-bit numbers for each seed
class stream {
 public:
  explicit stream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) {  // every value equally likely
    std::uint64_t const reject = (0 - n) % n;
    for (;;)
      if (auto const x = (*this)(); x >= reject) return x % n;
  }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

struct split {
  std::vector<question> train, val;
};

// Each question occurs once. Where a+b is held out, b+a is not trained on either.
inline split make(settings const& s) {
  auto const range = [](char const* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) weft::io::refuse("{} {}: expected {} to {}", flag, value, low, high);
  };
  range("--least", s.least, 0, 999'999);
  range("--most", s.most, s.least, 999'999);
  range("--train", s.train, 0, 10'000'000);
  range("--val", s.val, 1, 10'000'000);
  range("--repeats", s.repeats, 0, 1000);
  if (!(s.slip >= 0 && s.slip <= 1)) weft::io::refuse("--slip {}: expected 0 to 1", s.slip);
  if (s.kinds.empty()) weft::io::refuse("--kind: expected add, sub or mul");
  std::int64_t const each = s.most - s.least + 1;
  if (each > 2000) weft::io::refuse("--least {} --most {}: at most 2000 different operands", s.least, s.most);

  std::vector<question> all;
  for (auto const& kind : std::set<std::string>(s.kinds.begin(), s.kinds.end())) {
    if (kind != "add" && kind != "sub" && kind != "mul") weft::io::refuse("--kind {}: expected add, sub or mul", weft::io::show(kind));
    char const op = kind == "add" ? '+' : kind == "sub" ? '-' : '*';
    for (auto a = s.least; a <= s.most; ++a)
      for (auto b = s.least; b <= (op == '-' ? a : s.most); ++b) all.push_back({a, b, op});
  }
  stream next(static_cast<std::uint64_t>(s.seed));
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[next.below(i)]);

  split out;
  std::set<std::pair<char, std::pair<std::int64_t, std::int64_t>>> held;  // operands in ascending order
  auto const key = [](question const& q) { return std::pair{q.op, std::minmax({q.a, q.b})}; };
  for (auto const& q : all)
    if (std::ssize(out.val) < s.val) out.val.push_back(q), held.insert(key(q));
    else if (!held.contains(key(q)) && (s.train == 0 || std::ssize(out.train) < s.train)) out.train.push_back(q);
  if (std::ssize(out.val) < s.val || out.train.empty() || std::ssize(out.train) < s.train)
    weft::io::refuse("--train {} --val {}: there are {} questions of this kind; widen --least and --most", s.train, s.val, all.size());
  return out;
}

}  // namespace arithmetic
