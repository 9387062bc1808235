// answers.cpp — supervised rows and pairs in the forms of verl and TRL.
#include <weft/io/dataset.hpp>

#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
constexpr char const* chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr i32 im_end = 256, begin_of_text = 259;

struct words_of_bytes : byte_tokenizer {
  words_of_bytes() : byte_tokenizer(byte_tokenizer_json({"<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|begin|>"}), "t") {
    set_eos({im_end});
  }
  void begin_with(std::vector<i32> ids) { begin_ids_ = std::move(ids); }
};
struct lab {
  words_of_bytes plain, chat;
  dataset_options options;
  explicit lab(row_kind kind) {
    options.vocab = 260, options.kind = kind;
    chat.set_chat(chat_template(chatml, "", "t"));
  }
  std::vector<data_row> read(std::string const& row, tokenizer const& words) const {
    return parse_rows(row, options, &words, "data.jsonl", 7);
  }
  std::string show(std::vector<i32> const& ids) const { return plain.decode(ids); }
};
std::string const question = R"({"role":"user","content":"1+1?"})", right = R"({"role":"assistant","content":"2"})",
                  wrong = R"({"role":"assistant","content":"3"})";
std::string const asked = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n";
}  // namespace

TEST_CASE("supervised: a prompt and its answer, as text and as messages") {
  lab const l(row_kind::supervised);
  auto const text = l.read(R"({"prompt":"The sky is","completion":" blue."})", l.plain)[0];
  CHECK((l.show(text.prompt) == "The sky is" && l.show(text.response) == " blue.<|im_end|>"));
  for (std::string const key : {"prompt", "messages"}) {
    auto const chat = l.read("{\"" + key + "\":[" + question + "],\"completion\":[" + right + "]}", l.chat)[0];
    CHECK(l.show(chat.prompt) == asked);
    CHECK(l.show(chat.response) == "2<|im_end|>");
    CHECK(chat.response.back() == im_end);
    CHECK(l.show(l.read("{\"" + key + "\":[" + question + "],\"answer\":\"2\"}", l.chat)[0].response) == "2<|im_end|>");
  }
}
TEST_CASE("supervised: every turn of the assistant is a sample after all that came before it") {
  lab const l(row_kind::supervised);
  auto const rows = l.read("{\"messages\":[" + question + "," + right + "," + question + "," + wrong + "],\"task\":\"add\"}", l.chat);
  REQUIRE(rows.size() == 2);
  CHECK((l.show(rows[0].prompt) == asked && l.show(rows[0].response) == "2<|im_end|>"));
  CHECK(l.show(rows[1].prompt) == "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n" + asked);
  CHECK(l.show(rows[1].response) == "3<|im_end|>");
  for (auto const& row : rows) CHECK((row.line == 7 && row.extra == R"({"task":"add"})"));
  CHECK_REFUSED(l.read("{\"messages\":[" + question + "]}", l.chat), "data.jsonl:7: no message of the assistant follows another message");
  CHECK_REFUSED(l.read("{\"messages\":[" + right + "]}", l.chat), "no message of the assistant follows another message");
}
TEST_CASE("supervised: a text is learned whole") {
  lab l(row_kind::supervised);
  auto const bare = l.read(R"({"text":"abc"})", l.plain)[0];
  CHECK((l.show(bare.prompt) == "a" && l.show(bare.response) == "bc<|im_end|>"));
  l.plain.begin_with({begin_of_text});
  auto const begun = l.read(R"({"text":"abc"})", l.plain)[0];
  CHECK((begun.prompt == std::vector<i32>{begin_of_text} && l.show(begun.response) == "abc<|im_end|>"));
  CHECK_REFUSED(l.read(R"({"text":7})", l.plain), "no response, completion or answer, no messages and no text");
}
TEST_CASE("supervised: what is refused") {
  lab const l(row_kind::supervised);
  CHECK_REFUSED(l.read(R"({"prompt":"x","completion":[)" + right + "]}", l.chat),
                "response is a message; then the prompt must be messages");
  CHECK_REFUSED(l.read("{\"prompt\":[" + question + "],\"completion\":[" + right + "," + right + "]}", l.chat),
                "must be one message of the assistant");
  CHECK_REFUSED(l.read("{\"prompt\":[" + question + "],\"completion\":[" + question + "]}", l.chat),
                "must be one message of the assistant");
  CHECK_REFUSED(l.read("{\"prompt\":[" + question + "],\"completion\":[]}", l.chat), "the response is empty");
  CHECK_REFUSED(l.read("{\"prompt\":[" + question + "," + right + "],\"answer\":\"x\"}", l.chat),
                "the prompt ends with a message of the assistant");
}

TEST_CASE("pairs: with a prompt, as text, messages and ids") {
  lab const l(row_kind::pair);
  auto const text = l.read(R"({"prompt":"The sky is","chosen":" blue.","rejected":" green."})", l.plain)[0];
  CHECK(
      (l.show(text.prompt) == "The sky is" && l.show(text.response) == " blue.<|im_end|>" && l.show(text.rejected) == " green.<|im_end|>"));
  auto const chat = l.read("{\"prompt\":[" + question + "],\"chosen\":[" + right + "],\"rejected\":[" + wrong + "]}", l.chat)[0];
  CHECK((l.show(chat.prompt) == asked && l.show(chat.response) == "2<|im_end|>" && l.show(chat.rejected) == "3<|im_end|>"));
  auto const ids = l.read(R"({"prompt_ids":[1,2],"chosen":[3],"rejected":[4,5]})", l.plain)[0];
  CHECK((ids.prompt == std::vector<i32>{1, 2} && ids.response == std::vector<i32>{3} && ids.rejected == std::vector<i32>{4, 5}));
}
TEST_CASE("pairs: without a prompt, what both begin with is the prompt") {
  lab const l(row_kind::pair);
  auto const text = l.read(R"({"chosen":"The sky is blue.","rejected":"The sky is black."})", l.plain)[0];
  CHECK(
      (l.show(text.prompt) == "The sky is" && l.show(text.response) == " blue.<|im_end|>" && l.show(text.rejected) == " black.<|im_end|>"));
  auto const longer = l.read(R"({"chosen":"Q: x\nA: yes","rejected":"Q: x\nA: yes sir"})", l.plain)[0];
  CHECK((l.show(longer.prompt) == "Q: x\nA:" && l.show(longer.response) == " yes<|im_end|>" &&
         l.show(longer.rejected) == " yes sir<|im_end|>"));
  auto const chat = l.read("{\"chosen\":[" + question + "," + right + "],\"rejected\":[" + question + "," + wrong + "]}", l.chat)[0];
  CHECK((l.show(chat.prompt) == asked && l.show(chat.response) == "2<|im_end|>" && l.show(chat.rejected) == "3<|im_end|>"));
}
TEST_CASE("pairs: what is refused") {
  lab const l(row_kind::pair);
  CHECK_REFUSED(l.read(R"({"prompt":"x","chosen":"a"})", l.plain), "the row has no rejected; a pair needs both");
  CHECK_REFUSED(l.read(R"({"chosen":"same","rejected":"same"})", l.plain), "chosen and rejected are the same text");
  CHECK_REFUSED(l.read(R"({"chosen":"abc","rejected":"xyz"})", l.plain), "do not begin alike");
  CHECK_REFUSED(l.read(R"({"chosen":"abc","rejected":[1]})", l.plain), "must be two strings or two lists of messages");
  CHECK_REFUSED(l.read("{\"chosen\":[" + right + "],\"rejected\":[" + wrong + "]}", l.chat), "no first message in common");
  CHECK_REFUSED(l.read("{\"chosen\":[" + question + "," + right + "],\"rejected\":[" + question + "," + right + "]}", l.chat),
                "ends with a message of the assistant");
  CHECK_REFUSED(l.read(R"({"prompt":"x","chosen":"a","rejected":3})", l.plain), "rejected must be a list of token ids");
}
