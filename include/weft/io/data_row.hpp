// data_row.hpp — one line of a data set as token ids, in the forms that verl and TRL write. A row has
//   prompt        a string (encoded as it is), or messages [{role, content}], also named `messages` (need a chat template), or `prompt_ids`
//   ground_truth  at top level or in reward_model; what is no string is kept as its JSON text
//   data_source   picks the reward
// and, where rows are supervised or pairs, answers (data_answers.hpp). Any other columns the reward sees as one JSON object.
// Errors name file and line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <weft/io/json.hpp>
#include <weft/io/lines.hpp>
#include <weft/io/tokenizer.hpp>

namespace weft::io {
struct data_row {
  std::vector<i32> prompt, response;  // response: of a supervised row; of a pair, the chosen answer
  std::vector<i32> rejected;          // of a pair, the other answer
  std::string prompt_text;            // what the prompt's ids stand for
  std::string data_source, ground_truth;
  std::string extra;  // the other columns, a JSON object
  std::size_t line = 0;
};

enum class row_kind { prompt, supervised, pair };      // a pair: two answers, one of them chosen
enum class truncation { error, left, right, middle };  // verl's: what to do with a prompt that is too long (the side that is cut)

struct dataset_options {
  std::string prompt_key = "prompt", reward_fn_key = "data_source", ground_truth_key = "ground_truth", response_key = {};
  i32 vocab = 0;                  // of the model: every id must be below it
  i32 max_prompt_length = 512;    // tokens
  i32 max_response_length = 512;  // tokens of an answer, its end included; a longer one is an error, filtered, or cut at its end
  truncation truncate = truncation::error;
  bool filter_overlong_prompts = false;  // leave rows out that are too long, and count them
  std::int64_t max_samples = -1;         // of all files together; -1: all
  bool choose_at_random = false;         // which ones, by the seed; false: the first
  std::uint64_t seed = 0;
  row_kind kind = row_kind::prompt;
  chat_options chat = {.add_generation_prompt = true};
};

namespace detail {
inline std::vector<i32> token_ids(json const& list, std::string_view key, i32 vocab, std::string const& at) {
  if (!list.as_array()) refuse("{}: {} must be a list of token ids", at, key);
  std::vector<i32> ids;
  ids.reserve(list.as_array()->size());
  for (json const& id : *list.as_array()) {
    if (!id.in_range(0, vocab - 1)) refuse("{}: {} holds {}; the vocabulary has the ids 0 to {}", at, key, show(id.dump(), 60), vocab - 1);
    ids.push_back(static_cast<i32>(id.to_int()));
  }
  return ids;
}

// What every part of a row is read with.
struct row_reader {
  dataset_options const& options;
  tokenizer const* words;
  std::string const& at;  // file:line

  void encode(std::string_view text, std::string_view what, std::vector<i32>& ids) const {
    if (!words) refuse("{}: the {} is text, and there is no tokenizer; give token ids (prompt_ids)", at, what);
    words->encode(text, ids);
    for (i32 id : ids)
      if (id >= options.vocab)
        refuse("{}: the {} has token id {}, outside the model's vocabulary of {}; tokenizer and model do not belong together", at, what, id,
               options.vocab);
  }
  std::string render(json::array const& messages, bool add_generation_prompt) const {
    for (json const& message : messages)
      for (char const* key : {"role", "content"})
        if (json const* text = message.find(key); !text || !text->as_string()) refuse("{}: a message needs {}, a string", at, key);
    chat_options how = options.chat;
    how.add_generation_prompt = add_generation_prompt;
    auto text = words ? words->render(messages, how) : std::nullopt;
    if (!text)
      refuse("{}: the prompt is a list of messages, and the tokenizer has no chat template; give the prompt as a string or as prompt_ids",
             at);
    return std::move(*text);
  }
  static json const* column(json const& root, std::string_view key) {  // null: there is none, or it holds null, as tables write it
    json const* const found = root.find(key);
    return found && !found->is_null() ? found : nullptr;
  }
  static bool is_of_assistant(json const& message) {
    json const* const role = message.find("role");
    return role && role->as_string() && *role->as_string() == "assistant";
  }
  void read_text(std::string text, data_row& row) const {
    row.prompt_text = std::move(text);
    encode(row.prompt_text, "prompt", row.prompt);
  }
  void read_messages(json::array const& messages, data_row& row) const {
    if (!messages.empty() && is_of_assistant(messages.back()))
      refuse("{}: the prompt ends with a message of the assistant, which is what the model should write; leave it out", at);
    read_text(render(messages, true), row);
  }
  void read_prompt(json const& root, data_row& row) const {
    json const *prompt = column(root, options.prompt_key), *ids = column(root, "prompt_ids");
    if (!prompt) prompt = column(root, "messages");
    if (ids) {
      row.prompt = token_ids(*ids, "prompt_ids", options.vocab, at);
      if (words) row.prompt_text = words->decode(row.prompt);
    } else if (!prompt) {
      refuse("{}: the row has neither {} nor messages nor prompt_ids", at, options.prompt_key);
    } else if (prompt->as_string()) {
      read_text(*prompt->as_string(), row);
    } else if (prompt->as_array()) {
      read_messages(*prompt->as_array(), row);
    } else {
      refuse("{}: {} must be a string or a list of messages", at, options.prompt_key);
    }
  }
};
}  // namespace detail
}  // namespace weft::io
