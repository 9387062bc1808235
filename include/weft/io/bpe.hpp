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
    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
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
      : words_(std::move(words)), slots_(vocabulary::capacity_for(merges)), filter_(slots_.size() / 16), of_bytes_(256 * 256) {
    for (int b = 0; b < 256; ++b) {
      char const byte = static_cast<char>(b);
      byte_ids_[b] = words_.find({&byte, 1});
    }
  }
  void add_merge(i32 left, i32 right, i32 made) {  // its rank is how many came before; of a pair that stands twice the later counts
    std::uint64_t const h = hash(left, right);
    merge const ranked{count_++, made};
    slots_[place(h, left, right)] = {left, right, ranked};
    std::string_view const a = words_[left], b = words_[right];
    if (a.size() == 1 && b.size() == 1) of_bytes_[static_cast<unsigned char>(a[0]) << 8 | static_cast<unsigned char>(b[0])] = ranked;
    filter_[h >> 6 & (filter_.size() - 1)] |= std::uint64_t{1} << (h & 63);
  }
  vocabulary const& words() const { return words_; }
  merge find(i32 left, i32 right) const {
    std::uint64_t const h = hash(left, right);
    if (!(filter_[h >> 6 & (filter_.size() - 1)] >> (h & 63) & 1)) return {};  // most pairs never merge: a look into the cache
    return slots_[place(h, left, right)].made;
  }

  bool knows_bytes(std::string_view bytes) const {  // each of them is a token
    return std::all_of(bytes.begin(), bytes.end(), [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
  }
  void encode(std::string_view bytes, std::vector<i32>& ids /*appended*/) const {
    std::size_t const first = ids.size();
    for (char c : bytes) {
      auto const byte = static_cast<unsigned char>(c);
      if (byte_ids_[byte] < 0) refuse("the tokenizer has no token for the byte {:#04x}", byte);
      ids.push_back(byte_ids_[byte]);
    }
    ids.resize(first +
               (bytes.size() <= longest_searched ? merge_by_search(bytes, ids.data() + first) : merge_by_heap(bytes, ids.data() + first)));
  }
  // Characters of three bytes that are tokens and come out when their own bytes are encoded.
  void add_character(std::string_view bytes, i32 id) { characters_[character(bytes)] = id; }
  i32 find_character(std::string_view bytes) const { return characters_[character(bytes)]; }
  // The same for characters of three bytes of which tokens hold all or nothing: each becomes one token before it can merge with another, so
  // the merges inside of them need not be looked for. False, and nothing done: a character is no token, or there are too many.
  bool encode_characters(std::string_view bytes, std::vector<i32>& ids /*appended*/) const {
    std::size_t const n = bytes.size() / 3, first = ids.size();
    if (bytes.size() % 3 != 0 || n > longest_searched) return false;
    i32 of[longest_searched];
    for (std::size_t i = 0; i < n; ++i)
      if ((static_cast<unsigned char>(bytes[3 * i]) & 0xf0) != 0xe0 || (of[i] = find_character(bytes.substr(3 * i))) < 0) return false;
    ids.insert(ids.end(), of, of + n);
    ids.resize(first + merge_by_search(n, ids.data() + first, [&](std::size_t i) { return find(of[i], of[i + 1]); }));
    return true;
  }
  // These merge the ids of n bytes (tokens) in place and return how many are left.
  std::size_t merge_by_search(std::string_view bytes, i32* ids) const {  // up to longest_searched bytes
    return merge_by_search(bytes.size(), ids, [&](std::size_t i) { return find_bytes(bytes, i); });
  }
  template <class Pair> std::size_t merge_by_search(std::size_t n, i32* ids, Pair const& pair /*the merge of tokens i and i + 1*/) const;
  std::size_t merge_by_heap(std::string_view bytes, i32* ids) const;
  static constexpr std::size_t longest_searched = 96;

 private:
  struct slot {
    i32 left = -1, right = -1;
    merge made;
  };
  static std::uint64_t hash(i32 left, i32 right) {
    return vocabulary::mix(static_cast<std::uint64_t>(left) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(right));
  }
  std::size_t place(std::uint64_t h, i32 left, i32 right) const {
    std::size_t at = h >> 24 & (slots_.size() - 1);
    while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  static std::size_t character(std::string_view bytes) {  // the code point of three bytes
    auto const byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
    return (byte(0) & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  }
  merge find_bytes(std::string_view bytes, std::size_t at) const {  // of the bytes at, at + 1
    return of_bytes_[static_cast<unsigned char>(bytes[at]) << 8 | static_cast<unsigned char>(bytes[at + 1])];
  }

  vocabulary words_;
  std::vector<slot> slots_;                                      // open addressing by pair
  std::vector<std::uint64_t> filter_;                            // [slots / 16]: a bit of every pair's hash
  std::vector<merge> of_bytes_;                                  // [256, 256] pairs of single bytes
  std::vector<i32> characters_ = std::vector<i32>(1 << 16, -1);  // by code point; -1: not one token
  std::uint32_t count_ = 0;                                      // merges
  i32 byte_ids_[256];
};

template <class Pair> std::size_t bpe::merge_by_search(std::size_t n, i32* ids, Pair const& pair) const {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t order[longest_searched];  // of the pair that begins here: its rank, then where; none: no merge, or nothing begins here
  i32 made[longest_searched];
  std::uint8_t next[longest_searched], before[longest_searched];  // n: none
  auto take = [&](std::size_t i, merge m) {
    order[i] = m.rank == no_rank ? none : static_cast<std::uint64_t>(m.rank) << 32 | i;
    made[i] = m.id;
  };
  for (std::size_t i = 0; i < n; ++i) {
    take(i, i + 1 < n ? pair(i) : merge());
    next[i] = static_cast<std::uint8_t>(i + 1);
    before[i] = static_cast<std::uint8_t>(i == 0 ? n : i - 1);
  }
  for (;;) {
    std::uint64_t first = none;
    for (std::size_t i = 0; i < n; ++i) first = std::min(first, order[i]);
    if (first == none) break;
    auto const at = static_cast<std::uint8_t>(first);
    std::size_t const gone = next[at], after = next[gone];
    ids[at] = made[at], ids[gone] = -1;
    order[gone] = none;
    next[at] = static_cast<std::uint8_t>(after);
    if (after < n) before[after] = at;
    take(at, after < n ? find(ids[at], ids[after]) : merge());
    if (before[at] < n) take(before[at], find(ids[before[at]], ids[at]));
  }
  return static_cast<std::size_t>(std::remove(ids, ids + n, -1) - ids);
}

inline std::size_t bpe::merge_by_heap(std::string_view bytes, i32* ids) const {
  std::size_t const n = bytes.size();
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
