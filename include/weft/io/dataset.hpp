// dataset.hpp — JSONL rows as verl and TRL write them, as token ids. A row has
//   prompt        a string (encoded as it is), or messages [{role, content}], also named `messages` (need a chat template), or `prompt_ids`
//   response      for supervised rows: `response`, `completion`, `answer`, or the column of response_key; an end-of-text id is appended
//   ground_truth  at top level or in reward_model; what is no string is kept as its JSON text
//   data_source   picks the reward
// and any other columns, which the reward sees as one JSON object. Errors name file and line. A byte-order mark, CRLF and empty lines
// are fine.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/io/file.hpp>
#include <weft/io/json.hpp>
#include <weft/io/tokenizer.hpp>

namespace weft::io {
struct data_row {
  std::vector<i32> prompt, response;  // response: empty unless the row is supervised
  std::string prompt_text;            // what the prompt's ids stand for
  std::string data_source, ground_truth;
  std::string extra;  // the other columns, a JSON object
  std::size_t line = 0;
};

enum class truncation { error, left, right, middle };  // verl's: what to do with a prompt that is too long (the side that is cut)

struct dataset_options {
  std::string prompt_key = "prompt", reward_fn_key = "data_source", response_key = {};
  i32 vocab = 0;                // of the model: every id must be below it
  i32 max_prompt_length = 512;  // tokens
  i32 max_response_length =
      512;  // tokens of a supervised response, its end included; a longer one is an error, filtered, or cut at its end
  truncation truncate = truncation::error;
  bool filter_overlong_prompts = false;  // leave rows out that are too long, and count them
  bool supervised = false;               // every row needs a response
  chat_options chat = {.add_generation_prompt = true};
};

struct dataset {
  std::vector<data_row> rows;
  std::size_t read = 0, filtered = 0, truncated = 0;  // rows in the files, left out as too long, cut
};

inline constexpr std::size_t most_line_bytes = std::size_t{32} << 20;

// Calls each(line without its end, line number) for every line that is not blank; holds one line at a time.
template <class F> void for_each_line(path const& file, F const& each) {
  descriptor const fd = open_read(file);
  std::uint64_t const bytes = size_of(fd, file);
  std::string held, block(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1 << 20)), '\0');
  std::size_t number = 1;
  auto finish = [&](std::string_view line) {
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) each(line, number);
    ++number;
  };
  for (std::uint64_t at = 0; at < bytes;) {
    std::size_t const take = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), bytes - at));
    read_at(fd, file, at, block.data(), take);
    at += take;
    std::string_view rest(block.data(), take);
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      if (held.empty()) {
        finish(rest.substr(0, end));
      } else {
        held += rest.substr(0, end);
        finish(held);
        held.clear();
      }
    }
    if (held.size() + rest.size() > most_line_bytes)
      refuse("{}:{}: the line is longer than {} bytes", file.string(), number, most_line_bytes);
    held += rest;
  }
  if (!held.empty()) finish(held);
}

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
inline void encode(tokenizer const* words, std::string_view text, char const* what, i32 vocab, std::string const& at,
                   std::vector<i32>& ids) {
  if (!words) refuse("{}: the {} is text, and there is no tokenizer; give token ids (prompt_ids)", at, what);
  words->encode(text, ids);
  for (i32 id : ids)
    if (id >= vocab)
      refuse("{}: the {} has token id {}, outside the model's vocabulary of {}; tokenizer and model do not belong together", at, what, id,
             vocab);
}
// The side that is cut: left keeps the end, right keeps the beginning, middle keeps both ends.
inline void cut(std::vector<i32>& ids, std::size_t most, truncation how) {
  std::size_t const over = ids.size() - most, head = how == truncation::left ? 0 : how == truncation::right ? most : most / 2;
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(head), ids.begin() + static_cast<std::ptrdiff_t>(head + over));
}
inline void read_prompt(json const& root, dataset_options const& o, tokenizer const* words, std::string const& at, data_row& row) {
  json const *prompt = root.find(o.prompt_key), *ids = root.find("prompt_ids");
  if (!prompt) prompt = root.find("messages");
  if (ids) {
    row.prompt = token_ids(*ids, "prompt_ids", o.vocab, at);
    if (words) row.prompt_text = words->decode(row.prompt);
  } else if (!prompt) {
    refuse("{}: the row has neither {} nor messages nor prompt_ids", at, o.prompt_key);
  } else if (prompt->as_string()) {
    row.prompt_text = *prompt->as_string();
    encode(words, row.prompt_text, "prompt", o.vocab, at, row.prompt);
  } else if (prompt->as_array()) {
    for (json const& message : *prompt->as_array())
      for (char const* key : {"role", "content"})
        if (json const* text = message.find(key); !text || !text->as_string()) refuse("{}: a message needs {}, a string", at, key);
    auto text = words ? words->render(*prompt, o.chat) : std::nullopt;
    if (!text)
      refuse("{}: the prompt is a list of messages, and the tokenizer has no chat template; give the prompt as a string or as prompt_ids",
             at);
    row.prompt_text = std::move(*text);
    encode(words, row.prompt_text, "prompt", o.vocab, at, row.prompt);
  } else {
    refuse("{}: {} must be a string or a list of messages", at, o.prompt_key);
  }
  if (row.prompt.empty()) refuse("{}: the prompt is empty", at);
}
inline json const* response_of(json const& root, dataset_options const& o) {
  if (!o.response_key.empty()) return root.find(o.response_key);
  for (char const* key : {"response", "completion", "answer"})
    if (json const* found = root.find(key)) return found;
  return nullptr;
}
inline void read_response(json const& root, dataset_options const& o, tokenizer const* words, std::string const& at, data_row& row) {
  json const* response = response_of(root, o);
  if (!response) refuse("{}: the row has no {}", at, o.response_key.empty() ? "response, completion or answer" : o.response_key);
  if (response->as_string()) encode(words, *response->as_string(), "response", o.vocab, at, row.response);
  else row.response = token_ids(*response, "response", o.vocab, at);
  if (response->as_string() && words && !words->eos_ids().empty()) row.response.push_back(words->eos_ids()[0]);
  if (row.response.empty()) refuse("{}: the response is empty", at);
}
}  // namespace detail

inline data_row parse_row(std::string_view text, dataset_options const& o, tokenizer const* words, path const& file, std::size_t line) {
  json root = parse_json(text, file.string(), line, {.depth = 32, .bytes = most_line_bytes, .values = 2'000'000});
  std::string const at = fmt::format("{}:{}", file.string(), line);
  if (!root.as_object()) refuse("{}: the row must be a JSON object", at);
  data_row row;
  row.line = line;
  detail::read_prompt(root, o, words, at, row);
  if (o.supervised) detail::read_response(root, o, words, at, row);
  row.data_source = string_or(root, o.reward_fn_key, "", at);
  json const *model = root.find("reward_model"), *truth = root.find("ground_truth");
  if (!truth && model) truth = model->find("ground_truth");
  if (truth && !truth->is_null()) row.ground_truth = truth->as_string() ? *truth->as_string() : truth->dump();
  json::object extra;
  for (auto& [key, value] : *root.as_object())
    if (key != o.prompt_key && key != "messages" && key != "prompt_ids" && key != o.reward_fn_key && key != "ground_truth")
      extra.emplace_back(key, std::move(value));
  row.extra = json(std::move(extra)).dump();
  return row;
}

inline dataset read_dataset(std::span<path const> files, dataset_options const& o, tokenizer const* words) {
  dataset out;
  for (path const& file : files) {
    for_each_line(file, [&](std::string_view text, std::size_t line) {
      data_row row = parse_row(text, o, words, file, line);
      ++out.read;
      auto fit = [&](std::vector<i32>& ids, i32 most, char const* what, truncation how) {
        if (ids.size() <= static_cast<std::size_t>(most)) return true;
        if (o.filter_overlong_prompts) return false;
        if (o.truncate == truncation::error)
          refuse(
              "{}:{}: the {} has {} tokens, more than {}; raise the limit, filter_overlong_prompts=true, or truncation=left|right|middle",
              file.string(), line, what, ids.size(), most);
        detail::cut(ids, static_cast<std::size_t>(most), how);
        ++out.truncated;
        return true;
      };
      bool const fits = fit(row.prompt, o.max_prompt_length, "prompt", o.truncate) &&
                        fit(row.response, o.max_response_length, "response", truncation::right);
      if (fits) out.rows.push_back(std::move(row));
      else ++out.filtered;
    });
  }
  if (out.read == 0) refuse("{}: the data set is empty", files.empty() ? "data" : files[0].string());
  if (out.rows.empty())
    refuse("{}: all {} rows were left out: their prompts are longer than {} tokens", files[0].string(), out.read, o.max_prompt_length);
  return out;
}

// The row at a position of an epoch: a permutation as a pure function of (seed, epoch), so that a cursor is all that a resume needs and
// nothing is stored. A Feistel network over the next power of four, walked until it lands inside.
inline std::uint64_t shuffled(std::uint64_t position, std::uint64_t rows, std::uint64_t epoch, std::uint64_t seed) {
  auto mix = [](std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  };
  unsigned half = 1;
  while (half < 31 && (std::uint64_t{1} << 2 * half) < rows) ++half;
  std::uint64_t const mask = (std::uint64_t{1} << half) - 1, key = mix(seed ^ mix(epoch));
  do {
    std::uint64_t left = position >> half, right = position & mask;
    for (std::uint64_t round = 0; round < 8; ++round) {
      std::uint64_t const next = left ^ (mix(key ^ mix(right << 8 | round)) & mask);
      left = right, right = next;
    }
    position = left << half | right;
  } while (position >= rows);
  return position;
}
}  // namespace weft::io
