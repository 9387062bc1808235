// golden_tokenizer.cpp — text to ids, ids to text and messages to text, against what Hugging Face computed. Arguments: a folder with
// tokenizer.json, then files of rows for it; another folder begins anew. A row has `text`, `ids`, `decoded`, or `messages`,
// `add_generation_prompt`, `rendered`, `ids`. A row that checks nothing is skipped, and said so.
#include <program/program.hpp>

#include <weft/io/dataset.hpp>
#include <weft/io/tokenizer.hpp>

namespace {
namespace io = weft::io;

struct counts {
  int passed = 0, failed = 0, skipped = 0;
};

std::string as_text(std::string_view bytes) {  // as Hugging Face gives it: broken characters become U+FFFD
  std::string quoted;
  io::append_json_string(quoted, bytes);
  return quoted;
}

bool row_holds(io::json const& row, io::tokenizer const& words, std::string const& at, bool& checked) {
  bool good = true;
  auto compare = [&](char const* what, bool same) {
    checked = true;
    if (!same) fmt::print("{}: {} differs\n", at, what);
    good &= same;
  };
  io::json const *text = row.find("text"), *messages = row.find("messages"), *ids = row.find("ids");
  std::string source = text && text->as_string() ? *text->as_string() : std::string();
  if (messages) {
    io::chat_options how;
    how.add_generation_prompt = io::bool_or(row, "add_generation_prompt", false, at);
    how.enable_thinking = io::bool_or(row, "enable_thinking", true, at);
    source = words.render(*messages, how).value_or("");
    compare("rendered", source == io::string_or(row, "rendered", "", at));
  }
  if (!ids) return good;
  auto const wanted = io::detail::token_ids(*ids, "ids", words.size(), at);
  if (text || messages) compare("ids", words.encode(source) == wanted);
  if (row.find("decoded")) compare("decoded", as_text(words.decode(wanted)) == as_text(io::string_or(row, "decoded", "", at)));
  return good;
}
}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments;
  program::about const about{"golden_tokenizer", "Compare tokenizers and chat templates with what Hugging Face computed"};
  return program::main(argc, argv, about, {{"arguments", &arguments, "FOLDER FILE.jsonl... [FOLDER FILE.jsonl...]", true}}, [&] {
    counts count;
    std::unique_ptr<io::tokenizer> words;
    for (std::string const& argument : arguments) {
      if (std::filesystem::is_directory(argument)) {
        words = io::read_tokenizer(argument);
        continue;
      }
      if (!words) io::refuse("{} comes before any folder with tokenizer.json", argument);
      io::for_each_line(argument, [&](std::string_view line, std::size_t number) {
        std::string const at = fmt::format("{}:{}", argument, number);
        bool checked = false, good = false;
        try {
          good = row_holds(io::parse_json(line, argument, number), *words, at, checked);
        } catch (io::input_error const& e) {
          fmt::print("{}: {}\n", at, e.what());
          checked = true;
        }
        if (!checked) fmt::print("{}: nothing to compare\n", at);
        ++(!checked ? count.skipped : good ? count.passed : count.failed);
      });
    }
    fmt::print("{} passed, {} failed, {} skipped\n", count.passed, count.failed, count.skipped);
    return count.failed == 0 ? 0 : 1;
  });
}
