// Text, token ids and messages into each other, line by line: tokenize --tokenizer DIR < in.jsonl > out.jsonl
// A row has messages (with add_generation_prompt, enable_thinking, date_string), or text, or ids; its answer has ids, text (of the ids)
// and, for messages, rendered. Errors name the line.
#include <program/program.hpp>

#include <weft/io/dataset.hpp>
#include <weft/io/tokenizer.hpp>

#include <cstdio>
#include <iostream>

namespace {
namespace io = weft::io;

struct settings {
  std::string folder;
  bool add_special_tokens = false, skip_special_tokens = false;
};

io::json answer(io::json const& row, io::tokenizer const& words, settings const& s, std::string const& at) {
  if (!row.as_object()) io::refuse("a row must be a JSON object");
  io::json const *messages = row.find("messages"), *text = row.find("text"), *given = row.find("ids");
  std::vector<weft::i32> ids;
  std::optional<std::string> rendered;
  if (messages) {
    io::chat_options how;
    how.add_generation_prompt = io::bool_or(row, "add_generation_prompt", false, at);
    how.enable_thinking = io::bool_or(row, "enable_thinking", true, at);
    how.date_string = io::string_or(row, "date_string", how.date_string, at);
    rendered = words.render(*messages, how);
    if (!rendered) io::refuse("{} has no chat template; give text or ids", s.folder);
    words.encode(*rendered, ids);
  } else if (text) {
    if (!text->as_string()) io::refuse("text must be a string");
    if (s.add_special_tokens) ids = words.begin_ids();
    words.encode(*text->as_string(), ids);
    if (s.add_special_tokens) ids.insert(ids.end(), words.end_ids().begin(), words.end_ids().end());
  } else if (given) {
    ids = io::detail::token_ids(*given, "ids", words.size(), at);
  } else {
    io::refuse("a row needs text, ids or messages");
  }
  io::json::array list;
  for (weft::i32 id : ids) list.emplace_back(id);
  io::json out = io::json::object{{"ids", std::move(list)}, {"text", words.decode(ids, s.skip_special_tokens)}};
  if (rendered) out.set("rendered", *rendered);
  return out;
}

int run(settings const& s) {
  auto const words = io::read_tokenizer(s.folder);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    std::string const at = fmt::format("line {}", number);
    io::json const row = io::parse_json(line, "stdin", number, {.bytes = io::most_line_bytes});
    try {
      fmt::print("{}\n", answer(row, *words, s, at).dump());
    } catch (io::input_error const& e) { io::refuse("stdin:{}: {}", number, e.what()); }
  }
  if (std::fflush(stdout) != 0) io::refuse("cannot write to stdout");
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  settings s;
  return program::main(argc, argv, {"tokenize", "Text, token ids and messages into each other: JSON lines from stdin to stdout"},
                       {{"--tokenizer", &s.folder, "folder with tokenizer.json", true},
                        {"--add-special-tokens", &s.add_special_tokens, "put around a text what the tokenizer's post_processor adds"},
                        {"--skip-special-tokens", &s.skip_special_tokens, "leave special tokens out of the answer's text"}},
                       [&] { return run(s); });
}
