// chat_template.cpp — messages as Jinja renders them (tests/data/chat_templates), and what is no known template.
#include <weft/io/chat_template.hpp>

#include "helper.hpp"

using namespace weft::io;

namespace {
path const templates = "tests/data/chat_templates";
std::string text_of(char const* name) { return io_test::read(templates / (std::string(name) + ".jinja")); }
json one_user(char const* text) { return json::array{json::object{{"role", "user"}, {"content", text}}}; }
std::string replaced(std::string text, std::string const& what, std::string const& by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
  return text;
}
}  // namespace

TEST_CASE("chat template: every known one renders as Jinja does") {
  std::size_t rows = 0;
  for (auto& entry : std::filesystem::directory_iterator(templates)) {
    path file = entry.path();
    if (file.extension() != ".jinja") continue;
    chat_template const chat(io_test::read(file), "<|begin_of_text|>", file.string());
    std::string const golden = io_test::read(file.replace_extension(".jsonl"));
    for (std::size_t at = 0, end; (end = golden.find('\n', at)) != golden.npos; at = end + 1, ++rows) {
      json const row = parse_json(std::string_view(golden).substr(at, end - at), file.string());
      chat_options how;
      how.add_generation_prompt = bool_or(row, "add_generation_prompt", false, "row");
      how.enable_thinking = bool_or(row, "enable_thinking", true, "row");
      INFO(file.string(), ": ", row.at("messages", "row").dump());
      CHECK(chat.render(row.at("messages", "row"), how) == string_or(row, "rendered", "", "row"));
    }
  }
  CHECK(rows > 200);
}

TEST_CASE("chat template: how line ends are written, and the default system message, do not matter") {
  std::string const written = replaced(text_of("smollm2"), "\n", "\\n");
  std::string const plain = chat_template(text_of("smollm2"), "", "t").render(one_user("x"), {});
  CHECK(chat_template("\n" + written + " \n", "", "t").render(one_user("x"), {}) == plain);
  std::string const other =
      replaced(text_of("qwen2_5"), "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "Use \\\\boxed{}.");
  CHECK(chat_template(other, "", "t").render(one_user("x"), {}) ==
        "<|im_start|>system\nUse \\boxed{}.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n");
}

TEST_CASE("chat template: an unknown one is refused when it is used, with what to do") {
  chat_template const other(replaced(text_of("qwen3"), "assistant", "Assistant"), "", "folder");
  CHECK_REFUSED(other.render(one_user("x"), {}), "folder: its chat template (hash ");
  CHECK_REFUSED(other.render(one_user("x"), {}),
                "give prompts as text or as token ids (prompt_ids), or put a template of docs/tokenizers.md");
  for (char const* broken :
       {"", "x", "'<|im_start|>system", "'<|im_start|>system\n", "'<|im_start|>system\\", "'<|im_start|>system\\n<|im_end|>", "\\n\\"})
    CHECK_REFUSED(chat_template(broken, "", "t").render(one_user("x"), {}), "not one of those known");
}

TEST_CASE("chat template: what is no list of messages is refused") {
  chat_template const chat(text_of("qwen2_5"), "", "t");
  auto refused = [&](char const* messages, char const* why) { CHECK_REFUSED(chat.render(parse_json(messages, "m"), {}), why); };
  refused("{}", "messages must be a list");
  refused("[]", "messages must be a list of at least one message");
  refused("[1]", "a message needs role, a string");
  refused(R"([{"role":"user"}])", "a message needs content, a string");
  refused(R"([{"role":"user","content":[{"type":"text","text":"x"}]}])", "a message needs content, a string");
  refused(R"([{"role":"critic","content":"x"}])", "the role 'critic' is none of system, user, assistant and tool");
  refused(R"([{"role":"assistant","content":"","tool_calls":[{}]}])", "tool_calls, which are not rendered");
}
