// bpe.cpp — merging: the search and the heap give the same ids, as the definition does; long pre-tokens without boundary; the cache of words.
#include <weft/io/bpe.hpp>

#include <random>

#include <weft/io/word_cache.hpp>

#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
// Bytes and random merges of tokens that are there.
bpe random_bpe(unsigned seed, unsigned letters, std::size_t merges) {
  std::mt19937 random(seed);
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  std::vector<std::array<std::size_t, 3>> pairs;
  for (int tries = 0; tries < 1000 && pairs.size() < merges; ++tries) {
    auto pick = [&] { return random() % 2 && tokens.size() > 256 ? 256 + random() % (tokens.size() - 256) : 'a' + random() % letters; };
    std::size_t const a = pick(), b = pick();
    std::string const both = tokens[a] + tokens[b];
    if (both.size() > 16 || std::find(tokens.begin(), tokens.end(), both) != tokens.end()) continue;
    pairs.push_back({a, b, tokens.size()});
    tokens.push_back(both);
  }
  vocabulary words(tokens.size(), tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) words.append(static_cast<i32>(id), tokens[id], true);
  bpe out(std::move(words), merges);
  for (auto& [a, b, made] : pairs) out.add_merge(static_cast<i32>(a), static_cast<i32>(b), static_cast<i32>(made));
  return out;
}
std::vector<i32> by_definition(bpe const& b, std::string const& text) {  // the lowest rank, of those the leftmost, again and again
  std::vector<i32> ids;
  for (char c : text) ids.push_back(b.words().find({&c, 1}));
  for (;;) {
    bpe::merge best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      if (auto const m = b.find(ids[i], ids[i + 1]); m.rank < best.rank) best = m, at = i;
    if (best.rank == bpe::no_rank) return ids;
    ids[at] = best.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}
}  // namespace

TEST_CASE("bpe: search and heap give what the definition gives") {
  std::mt19937 random(11);
  for (unsigned seed = 0; seed < 30; ++seed) {
    bpe const b = random_bpe(seed, 1 + seed % 4, 5 + seed * 3);
    for (int k = 0; k < 40; ++k) {
      std::string text;
      for (std::size_t n = random() % (bpe::longest_searched + 1); text.size() < n;)
        text += static_cast<char>('a' + random() % (1 + seed % 4));
      std::vector<i32> const wanted = by_definition(b, text);
      std::vector<i32> searched, heaped;
      for (char c : text) searched.push_back(b.words().find({&c, 1}));
      heaped = searched;
      searched.resize(b.merge_by_search(text, searched.data()));
      heaped.resize(b.merge_by_heap(text, heaped.data()));
      CHECK(searched == wanted);
      CHECK(heaped == wanted);
    }
  }
}

TEST_CASE("bpe: a megabyte without a boundary is merged") {
  bpe const b = random_bpe(1, 1, 6);
  std::vector<i32> ids;
  b.encode(std::string(1 << 20, 'a'), ids);
  std::string back;
  for (i32 id : ids) back += b.words()[id];
  CHECK(back == std::string(1 << 20, 'a'));
  CHECK(ids.size() < 1 << 19);
}

TEST_CASE("bpe: vocabulary with holes") {
  vocabulary words(3, 10);
  words.append(2, "ab", true);
  words.append(5, "hidden", false);
  words.append(9, "", true);
  CHECK((words[2] == "ab" && words[5] == "hidden" && words[9].empty() && words[0].empty() && words[7].empty() && words[-1].empty() &&
         words[10].empty()));
  CHECK((words.find("ab") == 2 && words.find("hidden") == -1 && words.find("a") == -1 && words.size() == 10));
}

TEST_CASE("bpe: the cache tells words of every length apart") {
  word_cache cache;
  std::mt19937 random(5);
  std::vector<std::string> words;
  for (std::size_t n = 1; n <= word_cache::longest; ++n)
    for (int k = 0; k < 20; ++k) {
      std::string word;
      while (word.size() < n) word += static_cast<char>(random() % 3);
      words.push_back(word);
    }
  for (auto& a : words)
    for (auto& b : words) CHECK((word_cache::key_of(a) == word_cache::key_of(b)) == (a == b));
  std::vector<i32> const ids{7, 8, 9}, many(8, 1);
  auto const key = word_cache::key_of("word");
  CHECK(cache.find(key).empty());
  cache.put(key, many);
  CHECK(cache.find(key).empty());
  cache.put(key, ids);
  CHECK(std::vector<i32>(cache.find(key).begin(), cache.find(key).end()) == ids);
}
