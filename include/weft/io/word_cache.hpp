// word_cache.hpp — the ids of short words that came before: one place for each hash, the newer word takes it. 9 MiB, always.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <weft/element.hpp>

namespace weft::io {
class word_cache {
 public:
  static constexpr std::size_t longest = 31;
  // all: the word is all of a pre-token
  std::span<i32 const> find(std::string_view word, bool all) const {  // empty: unknown
    if (word.size() <= 7) {
      std::uint64_t const w = short_of(word, all);
      short_entry const& at = short_[place(w)];
      if (at.word == w) return {at.ids, at.ids[1] < 0 ? 1u : 2u};
    }
    key const k = key_of(word, all);
    entry const& at = entries_[place(k)];
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < k.size(); ++i) differs |= at.word[i] ^ k[i];
    return {at.ids, differs == 0 ? at.count : 0u};
  }
  void put(std::string_view word, bool all, std::span<i32 const> ids) {
    if (word.size() <= 7 && ids.size() <= 2) {
      std::uint64_t const w = short_of(word, all);
      short_[place(w)] = {w, {ids[0], ids.size() == 2 ? ids[1] : -1}};
      return;
    }
    if (ids.size() > sizeof entry::ids / sizeof(i32)) return;
    key const k = key_of(word, all);
    entry& at = entries_[place(k)];
    at.word = k;
    at.count = static_cast<std::uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), at.ids);
  }

 private:
  // A word of up to 31 bytes as four numbers: its bytes, zeros, its length and `all` in the last byte; of up to 7 as one.
  using key = std::array<std::uint64_t, 4>;
  static std::uint64_t mark(std::string_view word, bool all) { return static_cast<std::uint64_t>(word.size() | (all ? 0x80 : 0)) << 56; }
  static std::uint64_t short_of(std::string_view word, bool all) { return tail(word, word.size()) | mark(word, all); }
  static key key_of(std::string_view word, bool all) {
    key k{};
    std::size_t const whole = word.size() / 8, rest = word.size() % 8;
    for (std::size_t i = 0; i < whole; ++i) std::memcpy(&k[i], word.data() + 8 * i, 8);
    if (rest > 0) k[whole] = tail(word, rest);
    k[3] |= mark(word, all);
    return k;
  }
  struct alignas(64) entry {
    key word{};
    std::uint32_t count = 0;
    i32 ids[7];
  };
  struct short_entry {
    std::uint64_t word = 0;
    i32 ids[2];  // the second -1: there is one
  };
  std::vector<entry> entries_ = std::vector<entry>(1 << 17);
  std::vector<short_entry> short_ = std::vector<short_entry>(1 << 16);  // words of up to 7 bytes and 2 ids, a quarter the size

  static std::size_t place(std::uint64_t word) {
    word *= 0x9e3779b97f4a7c15u;
    return (word ^ word >> 32) * 0xbf58476d1ce4e5b9u >> 48;  // 16 bits: as many places as there are
  }

  // The last `rest` bytes (1 to 7) as a number, without reading past either end.
  static std::uint64_t tail(std::string_view word, std::size_t rest) {
    char const* const end = word.data() + word.size();
    auto load = [](char const* from, auto number) {
      std::memcpy(&number, from, sizeof number);
      return static_cast<std::uint64_t>(number);
    };
    if (word.size() >= 8) return load(end - 8, std::uint64_t()) >> 8 * (8 - rest);
    if (rest >= 4) return load(word.data(), std::uint32_t()) | load(end - 4, std::uint32_t()) << 8 * (rest - 4);
    auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(word[i])) << 8 * i; };
    return byte(0) | byte(rest / 2) | byte(rest - 1);
  }
  std::size_t place(key const& k) const {
    std::uint64_t const mixed =
        k[0] * 0x9e3779b97f4a7c15u + k[1] * 0xbf58476d1ce4e5b9u + k[2] * 0x94d049bb133111ebu + k[3] * 0xd6e8feb86659fd93u;
    return ((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u) >> 47;  // 17 bits: as many places as there are
  }
};
}  // namespace weft::io
