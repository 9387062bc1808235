// data_answers.hpp — the answers of supervised rows and of pairs. Forms of a supervised row:
//   prompt with `response`, `completion`, `answer` or the column of response_key: a string, which gets the end-of-text id appended; token
//     ids, which stay as they are; or a message of the assistant in a list, as the chat template writes it
//   `messages`: every turn of the assistant is a sample of its own, after all that came before it
//   `text`: all of it is to be learned; its first token (begin-of-text where the tokenizer has one) is the prompt
// and of a pair, where `chosen` and `rejected` are answers in the same forms:
//   with a prompt; or without one, both holding the whole exchange: what they begin with alike is the prompt
// An answer of a chat ends with the id that ends a turn; what a template writes behind it belongs to the next turn.
#pragma once
#include <algorithm>

#include <weft/io/data_row.hpp>

namespace weft::io::detail {
struct answer_reader : row_reader {
  std::vector<data_row> supervised(json const& root) const {
    json const *response = response_of(root), *messages = column(root, "messages"), *text = column(root, "text");
    std::vector<data_row> rows;
    if (response) {
      data_row& row = rows.emplace_back();
      read_prompt(root, row);
      row.response = answer(*response, "response", root);
    } else if (messages && messages->as_array()) {
      turns(*messages->as_array(), rows);
    } else if (text && text->as_string()) {
      whole(*text->as_string(), rows.emplace_back());
    } else {
      refuse("{}: the row has no {}", at,
             options.response_key.empty() ? "response, completion or answer, no messages and no text" : options.response_key);
    }
    return rows;
  }
  data_row pair(json const& root) const {
    json const *chosen = column(root, "chosen"), *rejected = column(root, "rejected");
    if (!chosen || !rejected) refuse("{}: the row has no {}; a pair needs both", at, chosen ? "rejected" : "chosen");
    data_row row;
    if (column(root, options.prompt_key) || column(root, "prompt_ids")) {
      read_prompt(root, row);
      row.response = answer(*chosen, "chosen", root);
      row.rejected = answer(*rejected, "rejected", root);
    } else if (chosen->as_array() && rejected->as_array()) {
      exchanges(*chosen->as_array(), *rejected->as_array(), row);
    } else if (chosen->as_string() && rejected->as_string()) {
      texts(*chosen->as_string(), *rejected->as_string(), row);
    } else {
      refuse("{}: chosen and rejected must be two strings or two lists of messages, or stand beside a {}", at, options.prompt_key);
    }
    return row;
  }

 private:
  json const* response_of(json const& root) const {
    if (!options.response_key.empty()) return column(root, options.response_key);
    for (char const* key : {"response", "completion", "answer"})
      if (json const* found = column(root, key)) return found;
    return nullptr;
  }
  void end(std::vector<i32>& ids) const {
    if (words && !words->eos_ids().empty()) ids.push_back(words->eos_ids()[0]);
  }
  std::vector<i32> answer(json const& from, char const* what, json const& root) const {
    std::vector<i32> ids;
    bool const messages = from.as_array() && !from.as_array()->empty() && from.as_array()->front().as_object();
    if (from.as_string()) {
      encode(*from.as_string(), what, ids);
      end(ids);
    } else if (messages) {
      json const* prompt = column(root, options.prompt_key);
      if (!prompt) prompt = column(root, "messages");
      if (!prompt || !prompt->as_array() || column(root, "prompt_ids"))
        refuse("{}: {} is a message; then the prompt must be messages too", at, what);
      ids = message(*prompt->as_array(), *from.as_array(), what);
    } else {
      ids = token_ids(from, what, options.vocab, at);
    }
    if (ids.empty()) refuse("{}: the {} is empty", at, what);
    return ids;
  }
  // The assistant's message after the prompt, as the template writes it, up to the end of the turn.
  std::vector<i32> message(json::array const& prompt, json::array const& answers, char const* what) const {
    if (answers.size() != 1 || !is_of_assistant(answers[0])) refuse("{}: {} must be one message of the assistant", at, what);
    json::array all = prompt;
    all.push_back(answers[0]);
    std::string const before = render(prompt, true), after = render(all, false);
    if (!after.starts_with(before))
      refuse("{}: the chat template does not write an answer where the head of the answer ends; give the {} as text", at, what);
    std::vector<i32> ids;
    encode(std::string_view(after).substr(before.size()), what, ids);
    auto const& ends = words->eos_ids();
    auto const last = std::find_if(ids.rbegin(), ids.rend(), [&](i32 id) { return std::find(ends.begin(), ends.end(), id) != ends.end(); });
    if (last != ids.rend()) ids.erase(last.base(), ids.end());
    return ids;
  }
  void turns(json::array const& messages, std::vector<data_row>& rows) const {
    for (std::size_t i = 1; i < messages.size(); ++i) {
      if (!is_of_assistant(messages[i])) continue;
      json::array const before(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(i));
      data_row& row = rows.emplace_back();
      read_text(render(before, true), row);
      row.response = message(before, {messages[i]}, "message");
    }
    if (rows.empty()) refuse("{}: no message of the assistant follows another message, so there is nothing to learn", at);
  }
  void whole(std::string const& text, data_row& row) const {
    encode(text, "text", row.response);
    end(row.response);
    row.prompt = words->begin_ids();
    if (row.prompt.empty() && !row.response.empty()) {
      row.prompt.push_back(row.response[0]);
      row.response.erase(row.response.begin());
    }
    row.prompt_text = words->decode(row.prompt);
    if (row.response.empty()) refuse("{}: the text is empty", at);
  }
  void exchanges(json::array const& chosen, json::array const& rejected, data_row& row) const {
    auto const part = std::mismatch(chosen.begin(), chosen.end(), rejected.begin(), rejected.end(),
                                    [](json const& a, json const& b) { return a.dump() == b.dump(); });
    json::array const prompt(chosen.begin(), part.first);
    if (prompt.empty()) refuse("{}: chosen and rejected have no first message in common; it is the prompt", at);
    read_messages(prompt, row);
    row.response = message(prompt, {part.first, chosen.end()}, "chosen");
    row.rejected = message(prompt, {part.second, rejected.end()}, "rejected");
  }
  // Texts part where the first word begins that differs, its blank with it.
  void texts(std::string_view chosen, std::string_view rejected, data_row& row) const {
    auto const part = std::mismatch(chosen.begin(), chosen.end(), rejected.begin(), rejected.end());
    std::size_t at_most = static_cast<std::size_t>(part.first - chosen.begin()), cut = at_most;
    if (cut == chosen.size() && cut == rejected.size()) refuse("{}: chosen and rejected are the same text", at);
    while (cut > 0 && chosen[cut - 1] != ' ' && chosen[cut - 1] != '\n') --cut;
    if (cut > 0 && chosen[cut - 1] == ' ') --cut;
    if (cut == 0) refuse("{}: chosen and rejected do not begin alike, and there is no {}", at, options.prompt_key);
    read_text(std::string(chosen.substr(0, cut)), row);
    for (auto const& [from, to] : {std::pair(chosen, &row.response), std::pair(rejected, &row.rejected)}) {
      encode(from.substr(cut), "answer", *to);
      end(*to);
      if (to->empty()) refuse("{}: an answer is empty", at);
    }
  }
};
}  // namespace weft::io::detail
