// bpe.hpp — byte-level byte-pair encoding (Sennrich et al. 2016, over bytes as in GPT-2): the vocabulary, the merges in the order of
// their rank, and the merging of one pre-token. The pair of lowest rank is merged first, of equal pairs the leftmost.
// Short pre-tokens are searched for the lowest rank again and again; long ones keep their pairs in a heap: O(n log n), so that a text
// without any boundary stays harmless.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <weft/element.hpp>
#include <weft/io/error.hpp>

namespace weft::io {
// Tokens by id and ids by token, as bytes. Ids may have holes; those stand for nothing.
class vocabulary {
 public:
  explicit vocabulary(std::size_t tokens, std::size_t ids) : offsets_(ids + 1), slots_(capacity_for(tokens), -1) {}

  // Every id once, in rising order; `found` says whether find() may give it.
  void append(i32 id, std::string_view bytes, bool found) {
    auto const at = static_cast<std::size_t>(id);
    std::fill(offsets_.begin() + static_cast<std::ptrdiff_t>(filled_), offsets_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              blob_.size());
    blob_ += bytes;
    offsets_[filled_ = at + 1] = blob_.size();
    if (!found) return;
    std::size_t slot = hash(bytes) & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = id;
  }
  i32 size() const { return static_cast<i32>(offsets_.size() - 1); }
  std::string_view operator[](i32 id) const {
    if (id < 0 || id >= size()) return {};
    auto const at = static_cast<std::size_t>(id);
    return std::string_view(blob_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  i32 find(std::string_view bytes) const {  // -1: no such token
    for (std::size_t slot = hash(bytes) & (slots_.size() - 1); slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
      if ((*this)[slots_[slot]] == bytes) return slots_[slot];
    return -1;
  }
  static std::uint64_t hash(std::string_view bytes) {
    std::uint64_t h = bytes.size() * 0x9e3779b97f4a7c15u, word = 0;
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      std::memcpy(&word, bytes.data(), 8);
      h = mix(h ^ word);
    }
    for (word = 0; !bytes.empty(); bytes.remove_prefix(1)) word = word << 8 | static_cast<unsigned char>(bytes[0]);
    return mix(h ^ word);
  }
  static std::uint64_t mix(std::uint64_t x) {
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
  }
  static std::size_t capacity_for(std::size_t items) {  // at most half full
    std::size_t capacity = 16;
    while (capacity < 2 * items) capacity *= 2;
    return capacity;
  }

 private:
  std::string blob_;
  std::vector<std::size_t> offsets_;  // [ids + 1]
  std::vector<i32> slots_;            // open addressing
  std::size_t filled_ = 0;
};

class bpe {
 public:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();
  struct merge {
    std::uint32_t rank = no_rank;
    i32 id = -1;  // of the two tokens as one
  };

  bpe(vocabulary words, std::size_t merges)
      : words_(std::move(words)), slots_(vocabulary::capacity_for(merges), no_rank), filter_(std::max<std::size_t>(slots_.size() / 16, 1)) {
    merges_.reserve(merges);
    for (int b = 0; b < 256; ++b) {
      char const byte = static_cast<char>(b);
      byte_ids_[b] = words_.find({&byte, 1});
    }
  }
  void add_merge(i32 left, i32 right, i32 made) {  // its rank is how many came before; of a pair that stands twice the later counts
    std::uint64_t const h = hash(left, right);
    slots_[place(h, left, right)] = static_cast<std::uint32_t>(merges_.size());
    merges_.push_back({left, right, made});
    filter_[h >> 6 & (filter_.size() - 1)] |= std::uint64_t{1} << (h & 63);
  }
  vocabulary const& words() const { return words_; }
  merge find(i32 left, i32 right) const {
    std::uint64_t const h = hash(left, right);
    if (!(filter_[h >> 6 & (filter_.size() - 1)] >> (h & 63) & 1)) return {};  // most pairs never merge: a look into the cache
    std::uint32_t const rank = slots_[place(h, left, right)];
    return rank == no_rank ? merge() : merge{rank, merges_[rank].made};
  }

  void encode(std::string_view bytes, std::vector<i32>& ids /*appended*/) const {
    std::size_t const first = ids.size();
    for (char c : bytes) {
      auto const byte = static_cast<unsigned char>(c);
      if (byte_ids_[byte] < 0) refuse("the tokenizer has no token for the byte {:#04x}", byte);
      ids.push_back(byte_ids_[byte]);
    }
    if (bytes.size() <= longest_searched) ids.resize(first + merge_by_search(ids.data() + first, bytes.size()));
    else ids.resize(first + merge_by_heap(ids.data() + first, bytes.size()));
  }
  // Both merge ids [n] in place and return how many are left.
  std::size_t merge_by_search(i32* ids, std::size_t n) const;  // n up to longest_searched
  std::size_t merge_by_heap(i32* ids, std::size_t n) const;
  static constexpr std::size_t longest_searched = 96;  // bytes

 private:
  struct pair {
    i32 left, right, made;
  };
  static std::uint64_t hash(i32 left, i32 right) {
    auto const key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    return vocabulary::mix(key * 0x9e3779b97f4a7c15u);
  }
  std::size_t place(std::uint64_t h, i32 left, i32 right) const {
    auto other = [&](pair const& p) { return p.left != left || p.right != right; };
    std::size_t at = h >> 20 & (slots_.size() - 1);
    while (slots_[at] != no_rank && other(merges_[slots_[at]])) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  vocabulary words_;
  std::vector<pair> merges_;           // by rank: the frequent ones lie close together
  std::vector<std::uint32_t> slots_;   // ranks; open addressing by pair
  std::vector<std::uint64_t> filter_;  // [slots / 16] words: a bit of every pair's hash
  i32 byte_ids_[256];
};

inline std::size_t bpe::merge_by_search(i32* ids, std::size_t n) const {
  std::uint32_t ranks[longest_searched];  // of the pair (i, i + 1)
  i32 made[longest_searched];
  auto look = [&](std::size_t i) {
    merge const m = i + 1 < n ? find(ids[i], ids[i + 1]) : merge();
    ranks[i] = m.rank, made[i] = m.id;
  };
  for (std::size_t i = 0; i < n; ++i) look(i);
  while (n > 1) {
    std::uint32_t lowest = no_rank;
    for (std::size_t i = 0; i < n; ++i) lowest = std::min(lowest, ranks[i]);
    if (lowest == no_rank) break;
    std::size_t const at = static_cast<std::size_t>(std::find(ranks, ranks + n, lowest) - ranks);
    ids[at] = made[at];
    --n;
    std::memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof(i32));
    std::memmove(ranks + at + 1, ranks + at + 2, (n - at - 1) * sizeof(ranks[0]));
    std::memmove(made + at + 1, made + at + 2, (n - at - 1) * sizeof(i32));
    look(at);
    if (at > 0) look(at - 1);
  }
  return n;
}

inline std::size_t bpe::merge_by_heap(i32* ids, std::size_t n) const {
  struct offer_of {
    std::uint32_t rank;
    std::size_t at;
    i32 left, right, made;  // outdated when another token stands there by now
    bool operator<(offer_of const& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }  // top: the lowest
  };
  std::vector<offer_of> heap;
  std::vector<std::size_t> next(n), before(n);  // neighbours of the token that begins here; n: none
  auto offer = [&](std::size_t at) {
    if (at >= n || next[at] >= n) return false;
    merge const m = find(ids[at], ids[next[at]]);
    if (m.rank != no_rank) heap.push_back({m.rank, at, ids[at], ids[next[at]], m.id});
    return m.rank != no_rank;
  };
  for (std::size_t i = 0; i < n; ++i) next[i] = i + 1, before[i] = i == 0 ? n : i - 1;
  for (std::size_t i = 0; i < n; ++i) offer(i);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    offer_of const best = heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    std::size_t const after = next[best.at];
    if (ids[best.at] != best.left || after >= n || ids[after] != best.right) continue;
    ids[best.at] = best.made;
    ids[after] = -1;
    next[best.at] = next[after];
    if (next[after] < n) before[next[after]] = best.at;
    if (offer(best.at)) std::push_heap(heap.begin(), heap.end());
    if (offer(before[best.at])) std::push_heap(heap.begin(), heap.end());
  }
  return static_cast<std::size_t>(std::remove(ids, ids + n, -1) - ids);
}
}  // namespace weft::io
