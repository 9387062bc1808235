// bpe.cpp — merging: the search and the heap give the same ids, as the definition does; long pre-tokens without boundary; the cache of words.
#include <weft/io/bpe.hpp>

#include <random>

#include <weft/io/joints.hpp>
#include <weft/io/word_cache.hpp>

#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
// Bytes and random merges of tokens that are there, from the bytes of an alphabet.
bpe random_bpe(unsigned seed, std::string const& alphabet, std::size_t merges) {
  std::mt19937 random(seed);
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  std::vector<std::array<std::size_t, 3>> pairs;
  for (int tries = 0; tries < 1000 && pairs.size() < merges; ++tries) {
    auto pick = [&] {
      return random() % 2 && tokens.size() > 256 ? 256 + random() % (tokens.size() - 256)
                                                 : std::size_t{static_cast<unsigned char>(alphabet[random() % alphabet.size()])};
    };
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
std::string letters(unsigned count) { return std::string("abcd").substr(0, count); }
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
    bpe const b = random_bpe(seed, letters(1 + seed % 4), 5 + seed * 3);
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

TEST_CASE("bpe: words cut where no token joins two characters give what the whole gives") {
  std::mt19937 random(3);
  std::string const characters[] = {"中", "为", "文", "字", "丁", "𠀀", "𠀁", "é", "a"};
  std::size_t cuts = 0, by_characters = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    bpe b = random_bpe(seed, "中为文字丁𠀀𠀁éa", 10 + seed);
    joints where;
    for (i32 id = 256; id < b.words().size(); ++id) where.add(b.words()[id]);
    for (char const* c : {"中", "为", "文", "字", "丁"}) {
      std::vector<i32> ids;
      b.encode(c, ids);
      if (ids.size() == 1) b.add_character(c, ids[0]);
    }
    for (int k = 0; k < 100; ++k) {
      std::string text;
      for (std::size_t n = random() % 20 + 1; n > 0; --n) text += characters[random() % std::size(characters)];
      std::vector<i32> whole, parts;
      b.encode(text, whole);
      std::string together;
      where.cut(text, [&](std::string_view part, bool entire) {
        CHECK((!part.empty() && is_utf8(part)));
        std::size_t const before = parts.size();
        if (entire && b.encode_characters(part, parts)) {  // begins with characters, ends with the same tokens
          std::vector<i32> of_bytes;
          b.encode(part, of_bytes);
          CHECK(std::vector<i32>(parts.begin() + std::ptrdiff_t(before), parts.end()) == of_bytes);
          ++by_characters;
        } else {
          b.encode(part, parts);
        }
        together += part;
        ++cuts;
      });
      CHECK(together == text);
      CHECK(parts == whole);
    }
  }
  CHECK(cuts > 3 * 6000);  // it does cut
  CHECK(by_characters > 20);
}
TEST_CASE("bpe: a megabyte without a boundary is merged") {
  bpe const b = random_bpe(1, "a", 6);
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
  i32 next = 0;
  for (bool all : {true, false})  // a word that was put last is found, and nothing that was never put
    for (auto& word : words) {
      std::vector<i32> const mine{++next, next + 1, next + 2};
      cache.put(word, all, mine);
      auto const got = cache.find(word, all);
      CHECK(std::vector<i32>(got.begin(), got.end()) == mine);
      CHECK((cache.find(word, !all).empty() || cache.find(word, !all)[0] != next));
    }
  for (auto& word : words)
    if (word.size() < word_cache::longest) CHECK(cache.find(word + "x", true).empty());
  std::vector<i32> const ids{7, 8, 9}, many(8, 1);
  CHECK(cache.find("word", true).empty());
  cache.put("word", true, many);
  CHECK(cache.find("word", true).empty());
  cache.put("word", true, ids);
  CHECK(std::vector<i32>(cache.find("word", true).begin(), cache.find("word", true).end()) == ids);
  for (std::size_t n = 1; n <= ids.size(); ++n) {  // short words stand elsewhere if their ids are few
    std::string const word(n, 's');
    CHECK(cache.find(word, true).empty());
    cache.put(word, true, std::span(ids).first(n));
    CHECK(std::vector<i32>(cache.find(word, true).begin(), cache.find(word, true).end()) ==
          std::vector<i32>(ids.begin(), ids.begin() + std::ptrdiff_t(n)));
  }
}
