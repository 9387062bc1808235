// chat.cpp — messages are refused or rendered, by every known template, and a text that is no template is told so. First byte: which.
#include <weft/io/chat_template.hpp>

#include <weft/io/json_parse.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace weft::io;
  static std::vector<chat_template> const known = [] {
    std::vector<chat_template> all;
    for (auto& entry : std::filesystem::directory_iterator(path(WEFT_TESTS) / "data/chat_templates"))
      if (entry.path().extension() == ".jinja") all.emplace_back(read_file(entry.path(), 1 << 20), "<s>", entry.path().string());
    return all;
  }();
  if (size == 0) return 0;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  chat_options how;
  how.add_generation_prompt = data[0] & 64;
  how.enable_thinking = data[0] & 128;
  return fuzz::refused_or_good([&] {
    chat_template const other(text, "", "fuzz");
    json const messages = parse_json(text, "fuzz");
    std::string const rendered = known[(data[0] & 63) % known.size()].render(messages, how);
    for (json const& m : *messages.as_array())  // roles are written as they are
      fuzz::demand(*m.find("role")->as_string() == "tool" || rendered.find(*m.find("role")->as_string()) != std::string::npos);
    other.render(messages, how);
  });
}
