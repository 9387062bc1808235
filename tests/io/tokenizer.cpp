// tokenizer.cpp — bytes to ids and back, special tokens in text, and what is no tokenizer of single bytes.
#include <weft/io/tokenizer.hpp>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
byte_tokenizer make(json const& root) { return byte_tokenizer(root, "tokenizer.json"); }
json shipped() { return byte_tokenizer_json({"<|endoftext|>", "<|end|>", "<|endoftext|><|x|>"}); }
json& member(json& root, std::string_view key) {
  for (auto& [name, value] : *root.as_object())
    if (name == key) return value;
  throw std::out_of_range("no such member");
}
}  // namespace

TEST_CASE("tokenizer: every text comes back, byte by byte") {
  auto const words = make(shipped());
  CHECK(words.size() == 259);
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  auto const ids = words.encode(all);
  CHECK(ids.size() == 256);
  for (int b = 0; b < 256; ++b) CHECK(ids[static_cast<std::size_t>(b)] == b);
  CHECK(words.decode(ids) == all);
  CHECK(words.encode("").empty());
}

TEST_CASE("tokenizer: special tokens in a text become their ids, the longest first") {
  auto const words = make(shipped());
  CHECK(words.encode("a<|endoftext|>b<|end|><|endoftext|><|x|><|en") == std::vector<i32>{'a', 256, 'b', 257, 258, '<', '|', 'e', 'n'});
  std::vector<i32> const ids{'a', 256, 'b', 300, -1};
  CHECK(words.decode(ids) == "a<|endoftext|>b");
  CHECK(words.decode(ids, true) == "ab");
  CHECK((words.is_special(256) && !words.is_special('a') && !words.is_special(-1)));
}

TEST_CASE("tokenizer: a folder, written and read") {
  io_test::temporary_folder folder;
  write_byte_tokenizer(folder.path, {"<|endoftext|>"}, 512);
  auto const words = read_tokenizer(folder.path);
  CHECK(words->eos_ids() == std::vector<i32>{256});
  CHECK(words->encode("1+1=") == std::vector<i32>{'1', '+', '1', '='});
  CHECK(!words->render(json::array{}, {}));
  io_test::overwrite(folder / "tokenizer_config.json", R"({"eos_token":{"content":"<|endoftext|>"}})");
  CHECK(read_tokenizer(folder.path)->eos_ids() == std::vector<i32>{256});
  io_test::overwrite(folder / "tokenizer_config.json", R"({"eos_token":"</s>"})");
  CHECK_REFUSED(read_tokenizer(folder.path), "eos_token '</s>' is not an added token");
  std::filesystem::remove(folder / "tokenizer_config.json");
  CHECK(read_tokenizer(folder.path)->eos_ids().empty());
  std::filesystem::remove(folder / "tokenizer.json");
  CHECK_REFUSED(read_tokenizer(folder.path), "cannot open");
}

TEST_CASE("tokenizer: anything else is refused, with what to do") {
  auto broken = [](auto const& change) {
    json root = shipped();
    change(root);
    return io_test::refusal([&] { make(root); });
  };
  auto set = [](char const* key, json value) { return [=](json& root) { root.set(key, value); }; };
  auto set_model = [](char const* key, json value) { return [=](json& root) { member(root, "model").set(key, value); }; };
  auto set_vocab = [](char const* key, json value) { return [=](json& root) { member(member(root, "model"), "vocab").set(key, value); }; };
  auto add = [](json token) { return [=](json& root) { member(root, "added_tokens").as_array()->push_back(token); }; };
  auto says = [&](std::string const& message, std::string const& part) {
    CHECK_MESSAGE(io_test::has(message, part), "wanted: ", part, "; refusal: ", message);
  };
  says(broken(set_model("merges", json::array{"a b"})),
       "model.merges is not empty; only tokenizers of single bytes are supported; give prompts as token ids");
  says(broken(set_model("merges", json::array{json::array{"a", "b"}})), "model.merges is not empty");
  says(broken(set_model("type", "WordPiece")), "model type 'WordPiece'");
  says(broken(set("model", json::array{})), "model type");
  says(broken(set("normalizer", json::object{{"type", "NFC"}})), "normalizer is not null");
  says(broken(set("pre_tokenizer", nullptr)), "pre_tokenizer must be ByteLevel");
  says(broken(set("pre_tokenizer", json::object{{"type", "Whitespace"}})), "pre_tokenizer must be ByteLevel");
  says(broken(set("pre_tokenizer", json::object{{"type", "ByteLevel"}, {"add_prefix_space", true}})), "add_prefix_space false");
  says(broken(set("post_processor", json::object{{"type", "TemplateProcessing"}})), "post_processor");
  says(broken(set("decoder", nullptr)), "decoder must be ByteLevel");
  says(broken(set("truncation", json::object{})), "truncation is not null");
  says(broken(set_model("end_of_word_suffix", "</w>")), "end_of_word_suffix");
  says(broken(set_model("vocab", json::array{})), "model.vocab must be an object");
  says(broken(set_model("vocab", json::object{{"a", 97}})), "lacks the symbol of byte 0");
  says(broken(set_vocab("ab", 300)), "holds 'ab', which is neither a byte nor an added token");
  says(broken(set_vocab("a", 98)), "id 98 stands for two tokens");
  says(broken(set_vocab("a", 256)), "id 256 stands for two tokens");
  says(broken(set_vocab("a", 1'000'000'000)), "has id '1000000000'; it must be from 0 to 65535");
  says(broken(set_vocab("a", -1)), "has id '-1'");
  says(broken(add(json::object{{"content", "<|a|>"}, {"id", 256}})), "id 256 stands for two tokens");
  says(broken(add(json::object{{"content", "<|end|>"}, {"id", 300}})), "added token '<|end|>' stands twice");
  says(broken(add(json::object{{"content", ""}, {"id", 300}})), "a token without content");
  says(broken(add(json::object{{"content", "<|b|>"}, {"id", 300}, {"lstrip", true}})), "'<|b|>' has lstrip set");
  says(broken(add(json::object{{"content", "<|b|>"}})), "id is missing");
  CHECK(broken([](json&) {}).empty());
  CHECK(broken(set_vocab("<|end|>", 257)).empty());  // some files list added tokens in the vocabulary too
}

TEST_CASE("tokenizer: a megabyte of blanks or of openings is no slower than text") {
  auto const words = make(shipped());
  CHECK(words.encode(std::string(1 << 20, ' ')).size() == 1 << 20);
  CHECK(words.encode(std::string(1 << 20, '<')).size() == 1 << 20);
}
