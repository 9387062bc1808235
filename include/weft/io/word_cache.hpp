// word_cache.hpp — the ids of short pre-tokens that came before: one place for each hash, the newer word takes it. 4 MiB, always.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <weft/element.hpp>

namespace weft::io {
class word_cache {
 public:
  std::span<i32 const> find(std::string_view word, std::uint64_t hash) const {  // empty: unknown
    entry const& at = entries_[hash & (entries_.size() - 1)];
    bool const same = at.length == word.size() && std::memcmp(at.bytes, word.data(), word.size()) == 0;
    return {at.ids, same ? at.count : 0u};
  }
  void put(std::string_view word, std::uint64_t hash, std::span<i32 const> ids) {
    if (word.empty() || word.size() > sizeof entry::bytes || ids.size() > sizeof entry::ids / sizeof(i32)) return;
    entry& at = entries_[hash & (entries_.size() - 1)];
    at.length = static_cast<std::uint8_t>(word.size());
    at.count = static_cast<std::uint8_t>(ids.size());
    std::memcpy(at.bytes, word.data(), word.size());
    std::memcpy(at.ids, ids.data(), ids.size_bytes());
  }

 private:
  struct alignas(64) entry {
    i32 ids[8];
    std::uint8_t length = 0, count = 0;
    char bytes[30];
  };
  std::vector<entry> entries_ = std::vector<entry>(1 << 16);
};
}  // namespace weft::io
