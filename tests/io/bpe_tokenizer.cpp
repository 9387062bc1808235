// bpe_tokenizer.cpp — tokenizer.json with merges: hostile files, hostile texts, and what is refused. Ids are compared with Hugging Face's by
// golden_tokenizer.
#include <weft/io/tokenizer.hpp>
#ifdef WEFT_TOKENIZER
#include <weft/io/bpe_tokenizer.hpp>

#include <thread>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
path const folder = "tests/data/tokenizers";
json shipped(char const* form) { return parse_json(io_test::read(folder / form / "tokenizer.json"), form); }
json& member(json& root, std::string_view key) {
  for (auto& [name, value] : *root.as_object())
    if (name == key) return value;
  throw std::out_of_range("no such member");
}
template <class F> std::string refusal_after(F const& change, char const* form = "pairs") {
  json root = shipped(form);
  change(root);
  return io_test::refusal([&] { bpe_tokenizer(root, "tokenizer.json"); });
}
auto set(char const* key, json value) {
  return [=](json& root) { root.set(key, value); };
}
auto set_model(char const* key, json value) {
  return [=](json& root) { member(root, "model").set(key, value); };
}
auto set_vocab(char const* key, json value) {
  return [=](json& root) { member(member(root, "model"), "vocab").set(key, value); };
}
auto add_merge(json merge) {
  return [=](json& root) { member(member(root, "model"), "merges").as_array()->push_back(merge); };
}
auto add_token(json token) {
  return [=](json& root) { member(root, "added_tokens").as_array()->push_back(token); };
}
json step(char const* text) { return parse_json(text, "step"); }
}  // namespace

TEST_CASE("bpe tokenizer: a folder, and the two forms of merges") {
  auto const pairs = read_tokenizer(folder / "pairs"), strings = read_tokenizer(folder / "strings");
  CHECK(pairs->decode(pairs->eos_ids()) == "<|im_end|>");
  CHECK(strings->decode(strings->eos_ids()) == "<|eot_id|>");
  CHECK(pairs->begin_ids().empty());
  CHECK(strings->decode(strings->begin_ids()) == "<|begin_of_text|>");
  CHECK(pairs->is_special(pairs->eos_ids()[0]));
  json root = shipped("pairs");
  for (json& merge : *member(member(root, "model"), "merges").as_array())
    merge = *(*merge.as_array())[0].as_string() + " " + *(*merge.as_array())[1].as_string();
  bpe_tokenizer const as_strings(root, "t");
  std::string const text = "the policy gradient of a reward model, naïve 世界 <|im_end|>";
  CHECK(as_strings.encode(text) == pairs->encode(text));
  CHECK(pairs->encode(text).size() < text.size() / 2);
}

TEST_CASE("bpe tokenizer: hostile texts") {
  for (char const* form : {"pairs", "strings"}) {
    auto const words = read_tokenizer(folder / form);
    std::string marks = "a";
    for (int i = 0; i < 1 << 18; ++i) marks += i % 2 ? "\u0301" : "\u0323";
    for (std::string const& text :
         {std::string(1 << 20, ' '), std::string(1 << 20, 'a'), std::string(1 << 20, '<'), std::string(1 << 20, '\n'),
          std::string(1 << 20, '\0'), std::string("\U0010ffff\uffff"), std::string("<|im_start|>") + std::string(1 << 19, '|')})
      CHECK(words->decode(words->encode(text)) == text);
    CHECK(words->decode(words->encode(marks)).size() > 1 << 18);
    for (char const* broken : {"\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"})
      CHECK_REFUSED(words->encode(broken), "is not UTF-8");
  }
}

TEST_CASE("bpe tokenizer: threads may share one") {
  auto const words = read_tokenizer(folder / "pairs");
  std::string const text = io_test::read(folder / "pairs.jsonl");
  auto const wanted = words->encode(text);
  std::vector<std::vector<i32>> got(4);
  std::vector<std::thread> threads;
  for (auto& ids : got) threads.emplace_back([&] { words->encode(text, ids); });
  for (auto& t : threads) t.join();
  for (auto& ids : got) CHECK(ids == wanted);
}

TEST_CASE("bpe tokenizer: hostile files") {
  auto says = [](std::string const& message, std::string const& part) {
    CHECK_MESSAGE(io_test::has(message, part), "wanted: ", part, "; refusal: ", message);
  };
  auto const object = [](char const* text) { return step(text); };
  CHECK(refusal_after([](json&) {}).empty());
  says(refusal_after(add_merge(object(R"(["zq","a"])"))), "needs 'zq', which model.vocab lacks");
  says(refusal_after(add_merge(object(R"(["q","z"])"))), "needs 'qz', which model.vocab lacks");
  for (char const* merge : {"1", "[]", R"(["a"])", R"(["a",1])", R"(["a","b","c"])", R"("a")", R"("a b c")", R"(" b")", R"("a ")", "null"})
    says(refusal_after(add_merge(object(merge))), "it must be a pair of tokens, or both with one blank between");
  says(refusal_after(set_vocab("a", 3)), "id 3 stands for two tokens");
  says(refusal_after(set_vocab("a", 2'000'000'000)), "token 'a' has id 2000000000; with ");
  says(refusal_after(set_vocab("a", -1)), "which is none");
  says(refusal_after(set_vocab("a", "x")), "which is none");
  CHECK(refusal_after(set_vocab("hole", 5000)).empty());
  says(refusal_after(set_model("vocab", json::array{})), "model.vocab must be an object");
  says(refusal_after(set_model("vocab", json::object{})), "which model.vocab lacks");
  says(refusal_after(set_model("merges", 1)), "model.merges must be a list");
  says(refusal_after(set_model("type", "Unigram")), "model.type 'Unigram' is not supported");
  says(refusal_after(set_model("dropout", 0.1)), "model.dropout is not 0");
  says(refusal_after(set_model("byte_fallback", true)), "model.byte_fallback is true");
  says(refusal_after(set_model("continuing_subword_prefix", "##")), "model.continuing_subword_prefix is not empty");
  says(refusal_after(set("normalizer", object(R"({"type":"Lowercase"})"))), "normalizer type 'Lowercase' is not supported");
  says(refusal_after(set("pre_tokenizer", object(R"({"type":"Metaspace"})"))), "pre_tokenizer type 'Metaspace' is not supported");
  says(refusal_after(set("pre_tokenizer", object(R"({"type":"Sequence","pretokenizers":[]})"))), "pre_tokenizer has no ByteLevel");
  says(refusal_after(set("pre_tokenizer", object(R"({"type":"ByteLevel","add_prefix_space":true})"))), "add_prefix_space is true");
  auto const split = [&](char const* pattern, char const* behavior) {
    return set(
        "pre_tokenizer",
        json::object{{"type", "Sequence"},
                     {"pretokenizers",
                      json::array{json::object{{"type", "Split"}, {"pattern", json::object{{"Regex", pattern}}}, {"behavior", behavior}},
                                  json::object{{"type", "ByteLevel"}, {"add_prefix_space", false}}}}});
  };
  says(refusal_after(split("a", "MergedWithNext")), "behavior 'MergedWithNext' is not supported");
  says(refusal_after(split("(", "Isolated")), "PCRE2 cannot compile the pattern '(' at byte 1");
  says(refusal_after(split("\\C", "Isolated")), "PCRE2 cannot compile");
  says(refusal_after(split(std::string(20000, 'a').c_str(), "Isolated")), "PCRE2 cannot compile");
  says(refusal_after(set("post_processor", object(R"({"type":"BertProcessing"})"))),
       "post_processor type 'BertProcessing' is not supported");
  says(refusal_after(set("decoder", nullptr)), "decoder must be ByteLevel");
  says(refusal_after(add_token(object(R"({"content":"","id":900})"))), "a token without content");
  says(refusal_after(add_token(object(R"({"content":"<x>","id":3})"))), "id 3 stands for two tokens");
  says(refusal_after(add_token(object(R"({"content":"a","id":900})"))), "added token 'a' has id 900, and id ");
  says(refusal_after(add_token(object(R"({"content":"<l>","id":900})"))), "added token '<l>' stands twice");

  json root = shipped("pairs");
  split("(\\w+\\w+)+$", "Isolated")(root);
  bpe_tokenizer const slow(root, "t");
  CHECK_REFUSED(slow.encode(std::string(200, 'a') + "!"), "the tokenizer's pattern fails on a text of 201 bytes");
}

TEST_CASE("bpe tokenizer: a byte without a token is refused, not dropped") {
  json root = shipped("pairs");
  auto& vocab = *member(member(root, "model"), "vocab").as_object();
  std::erase_if(vocab, [](json::member const& m) { return m.first == "~"; });
  bpe_tokenizer const words(root, "t");
  CHECK(words.decode(words.encode("ab")) == "ab");
  CHECK_REFUSED(words.encode("a~b"), "no token for the byte 0x7e");
}
#endif
