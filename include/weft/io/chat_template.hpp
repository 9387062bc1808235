// chat_template.hpp — messages as the text a chat model was trained on. A model's template is a Jinja program; known ones are recognised
// by their text and written here as code (tests compare them with Jinja): ChatML as Qwen2, Qwen2.5, SmolLM2 and others use it, Qwen3 and
// Llama 3. Any other is refused when it is used.
// A message has role and content, both texts; Qwen3's assistant messages may have reasoning_content. Tools are not rendered.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/io/json.hpp>

namespace weft::io {
struct chat_options {
  bool add_generation_prompt = false;       // end with the head of the assistant's answer
  bool enable_thinking = true;              // Qwen3; false: the answer's head holds an empty thought
  std::string date_string = "26 Jul 2024";  // Llama 3.1 and later write it into the system message: fixed, so that runs can be repeated
};

class chat_template {
 public:
  chat_template(std::string_view text, std::string bos_token, std::string where) : bos_(std::move(bos_token)), where_(std::move(where)) {
    std::string form(trim(text));
    take_system(form);
    for (std::size_t at = form.find("\\n"); at != form.npos; at = form.find("\\n", at))
      form.erase(at, 1), form[at] = '\n';  // line ends, both ways
    for (char c : form) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    for (auto& [hash, is] : known)
      if (hash == hash_) style_ = is;
  }
  std::string render(json const& messages, chat_options const& how) const {
    if (style_ == style::unknown)
      refuse("{}: its chat template (hash {:016x}) is not one of those known: ChatML as of Qwen2, Qwen2.5, Qwen3 and SmolLM2, and Llama 3; "
             "give prompts as text or as token ids (prompt_ids), or put a template of docs/tokenizers.md into chat_template.jinja",
             where_, hash_);
    auto const list = read(messages);
    std::string out;
    if (style_ == style::chatml) chatml(list, how, out);
    else if (style_ == style::qwen || style_ == style::qwen_thinking) qwen(list, how, out);
    else llama(list, how, out);
    return out;
  }

 private:
  enum class style { unknown, chatml, qwen, qwen_thinking, llama, llama_prompting, llama_dated };
  struct known_template {
    std::uint64_t hash;  // FNV-1a of the text, without blanks around it and without its default system message
    style is;
  };
  static constexpr known_template known[] = {
      {0x0fbfb5c24e90177fu, style::chatml},           // Qwen2, SmolLM2
      {0x88bf4138d5c826f0u, style::chatml},           // ChatML without a default system message
      {0xffed24008ffbdec5u, style::qwen},             // Qwen2.5
      {0xe62b0eb869d628c3u, style::qwen},             // Qwen3 Instruct 2507
      {0x521e84e1430005c3u, style::qwen_thinking},    // Qwen3
      {0xabb815b933a4981au, style::qwen_thinking},    // Qwen3, contents taken to be texts
      {0x0e60067a5537498eu, style::llama},            // Llama 3
      {0x74891e390e614ae2u, style::llama_prompting},  // Llama 3, always with the head of the answer
      {0x4fd30286bc0da17cu, style::llama_dated},      // Llama 3.1
      {0x1a6da26e3aef1b34u, style::llama_dated},      // Llama 3.2
  };
  struct message {
    std::string_view role, content;
    std::optional<std::string_view> thought;
  };

  std::string bos_, where_;
  std::optional<std::string> system_;  // the default system message
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  style style_ = style::unknown;

  // Takes the default system message, which models of one family differ in, out of a template: '<|im_start|>system\n...<|im_end|>...'
  void take_system(std::string& form) {
    constexpr std::string_view open = "'<|im_start|>system", close = "<|im_end|>";
    for (std::size_t at = form.find(open); at != form.npos; at = form.find(open, at + 1)) {
      std::size_t const line = form[at + open.size()] == '\n' ? 1 : 2;  // a line end, written out or as \n
      std::size_t const from = std::min(at + open.size() + line, form.size()), to = form.find(close, from);
      std::string const stated = to == form.npos ? std::string() : form.substr(from, to - from);
      if (stated.empty() || stated.find('\'') != stated.npos) continue;
      std::string text;
      for (std::size_t i = 0; i < stated.size(); ++i) {
        bool const escape = stated[i] == '\\' && i + 1 < stated.size();
        if (escape) ++i;
        text += escape && stated[i] == 'n' ? '\n' : stated[i];
      }
      for (std::size_t twice = form.find(stated); twice != form.npos; twice = form.find(stated, twice)) form.erase(twice, stated.size());
      system_ = text;
      return;
    }
  }
  std::vector<message> read(json const& messages) const {
    if (!messages.as_array() || messages.as_array()->empty()) refuse("messages must be a list of at least one message");
    std::vector<message> list;
    for (json const& from : *messages.as_array()) {
      json const *role = from.find("role"), *content = from.find("content"), *thought = from.find("reasoning_content");
      if (!role || !role->as_string()) refuse("a message needs role, a string");
      if (!content || !content->as_string()) refuse("a message needs content, a string");
      if (json const* calls = from.find("tool_calls"); calls && !calls->is_null())
        refuse("a message has tool_calls, which are not rendered; give the prompt as text or token ids");
      list.push_back({*role->as_string(), *content->as_string(), std::nullopt});
      if (thought && thought->as_string()) list.back().thought = *thought->as_string();
    }
    return list;
  }
  template <class... Text> static void turn(std::string& out, std::string_view role, Text const&... content) {
    (out += "<|im_start|>") += role;
    out += '\n';
    ((out += content), ...);
    out += "<|im_end|>\n";
  }
  void chatml(std::vector<message> const& list, chat_options const& how, std::string& out) const {  // any role
    if (system_ && list[0].role != "system") turn(out, "system", *system_);
    for (message const& m : list) turn(out, m.role, m.content);
    if (how.add_generation_prompt) out += "<|im_start|>assistant\n";
  }
  void qwen(std::vector<message> const& list, chat_options const& how, std::string& out) const {
    bool const thinks = style_ == style::qwen_thinking;
    std::size_t question = list.size();  // the last message of a user that is not the answer of a tool
    for (std::size_t i = list.size(); i-- > 0 && question == list.size();)
      if (list[i].role == "user" && !(list[i].content.starts_with("<tool_response>") && list[i].content.ends_with("</tool_response>")))
        question = i;
    if (question == list.size()) question = list.size() - 1;
    if (system_ && list[0].role != "system") turn(out, "system", *system_);
    for (std::size_t i = 0; i < list.size(); ++i) {
      message const& m = list[i];
      if (m.role == "assistant" && thinks) {
        thinking_turn(m, i > question, i + 1 == list.size(), out);
      } else if (m.role == "tool") {  // answers of tools that follow each other are one turn
        if (i == 0 || list[i - 1].role != "tool") out += "<|im_start|>user";
        ((out += "\n<tool_response>\n") += m.content) += "\n</tool_response>";
        if (i + 1 == list.size() || list[i + 1].role != "tool") out += "<|im_end|>\n";
      } else if (m.role == "user" || m.role == "system" || m.role == "assistant") {
        turn(out, m.role, m.content);
      } else {
        refuse("the role {} is none of system, user, assistant and tool", show(m.role, 40));
      }
    }
    if (how.add_generation_prompt) out += "<|im_start|>assistant\n";
    if (how.add_generation_prompt && thinks && !how.enable_thinking) out += "<think>\n\n</think>\n\n";
  }
  // Thoughts before the last question are left out of the history.
  static void thinking_turn(message const& m, bool after_question, bool last, std::string& out) {
    constexpr std::string_view begin = "<think>", end = "</think>";
    std::string_view content = m.content, thought = m.thought.value_or(std::string_view());
    if (std::size_t const first_end = content.find(end); !m.thought && first_end != content.npos) {
      thought = strip(content.substr(0, first_end), '\n', false, true);
      if (std::size_t const at = thought.rfind(begin); at != thought.npos) thought.remove_prefix(at + begin.size());
      thought = strip(thought, '\n', true, false);
      content = strip(content.substr(content.rfind(end) + end.size()), '\n', true, false);
    }
    if (after_question && (last || !thought.empty()))
      turn(out, m.role, "<think>\n", strip(thought, '\n', true, true), "\n</think>\n\n", strip(content, '\n', true, false));
    else turn(out, m.role, content);
  }
  void llama(std::vector<message> const& list, chat_options const& how, std::string& out) const {
    auto head = [&](std::string_view role) { ((out += "<|start_header_id|>") += role) += "<|end_header_id|>\n\n"; };
    bool const dated = style_ == style::llama_dated, own_system = dated && list[0].role == "system";
    out += bos_;
    if (dated) {
      head("system");
      ((out += "Cutting Knowledge Date: December 2023\nToday Date: ") += how.date_string) += "\n\n";
      if (own_system) out += trim(list[0].content);
      out += "<|eot_id|>";
    }
    for (std::size_t i = own_system ? 1 : 0; i < list.size(); ++i) {
      if (dated && (list[i].role == "tool" || list[i].role == "ipython"))
        refuse("answers of tools are not rendered for Llama 3.1 and later; give the prompt as text or token ids");
      head(list[i].role);
      (out += trim(list[i].content)) += "<|eot_id|>";
    }
    if (how.add_generation_prompt || style_ == style::llama_prompting) head("assistant");
  }

  static std::string_view strip(std::string_view text, char what, bool begin, bool end) {
    while (begin && text.starts_with(what)) text.remove_prefix(1);
    while (end && text.ends_with(what)) text.remove_suffix(1);
    return text;
  }
  static std::string_view trim(std::string_view text) {  // Python's str.strip()
    constexpr std::string_view blanks[] = {" ",      "\n",     "\t",     "\r",     "\v",     "\f",     "\x1c",   "\x1d",
                                           "\x1e",   "\x1f",   "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
                                           "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                           "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
    for (bool again = true; again;) {
      again = false;
      for (std::string_view blank : blanks) {
        if (text.starts_with(blank)) text.remove_prefix(blank.size()), again = true;
        if (text.ends_with(blank)) text.remove_suffix(blank.size()), again = true;
      }
    }
    return text;
  }
};
}  // namespace weft::io
