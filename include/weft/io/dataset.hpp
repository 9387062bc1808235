// dataset.hpp — the rows of JSONL files (data_row.hpp says in which forms). Opening one reads and checks every row once and keeps where it
// stands, 16 bytes each; a row is read and encoded again when it is asked for. So a file may be larger than memory, and a mistake in its
// last line is found before anything else begins. A file that changes meanwhile is refused.
#pragma once
#include <span>

#include <weft/io/data_answers.hpp>
#include <weft/io/data_row.hpp>

namespace weft::io {
// The samples of one line: one, or as many as it has turns to learn.
inline std::vector<data_row> parse_rows(std::string_view text, dataset_options const& o, tokenizer const* words, path const& file,
                                        std::size_t line) {
  json root = parse_json(text, file.string(), line, {.depth = 32, .bytes = most_line_bytes, .values = 2'000'000});
  std::string const at = fmt::format("{}:{}", file.string(), line);
  if (!root.as_object()) refuse("{}: the row must be a JSON object", at);
  detail::answer_reader const read{{o, words, at}};
  std::vector<data_row> rows;
  if (o.kind == row_kind::supervised) rows = read.supervised(root);
  else if (o.kind == row_kind::pair) rows.push_back(read.pair(root));
  else read.read_prompt(root, rows.emplace_back());
  data_row about;
  about.line = line;
  about.data_source = string_or(root, o.reward_fn_key, "", at);
  json const *model = read.column(root, "reward_model"), *truth = read.column(root, o.ground_truth_key);
  if (!truth && model) truth = read.column(*model, "ground_truth");
  if (truth) about.ground_truth = truth->as_string() ? *truth->as_string() : truth->dump();
  json::object extra;
  for (auto& [key, value] : *root.as_object())
    if (key != o.prompt_key && key != "messages" && key != "prompt_ids" && key != o.reward_fn_key && key != o.ground_truth_key)
      extra.emplace_back(key, std::move(value));
  about.extra = json(std::move(extra)).dump();
  for (data_row& row : rows) {
    if (row.prompt.empty()) refuse("{}: the prompt is empty", at);
    row.line = line, row.data_source = about.data_source, row.ground_truth = about.ground_truth, row.extra = about.extra;
  }
  return rows;
}
inline data_row parse_row(std::string_view text, dataset_options const& o, tokenizer const* words, path const& file, std::size_t line) {
  return std::move(parse_rows(text, o, words, file, line)[0]);
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

enum class fitted { whole, cut, too_long };

// Cuts what is too long, or says that the row is to be left out, or refuses.
inline fitted fit(data_row& row, dataset_options const& o, path const& file) {
  fitted is = fitted::whole;
  auto one = [&](std::vector<i32>& ids, i32 most_tokens, char const* what, truncation how) {
    std::size_t const most = static_cast<std::size_t>(most_tokens);
    if (ids.size() <= most || is == fitted::too_long) return;
    is = o.filter_overlong_prompts ? fitted::too_long : fitted::cut;
    if (o.filter_overlong_prompts) return;
    if (o.truncate == truncation::error)
      refuse("{}:{}: the {} has {} tokens, more than {}; raise the limit, filter_overlong_prompts=true, or truncation=left|right|middle",
             file.string(), row.line, what, ids.size(), most);
    // left keeps the end, right keeps the beginning, middle keeps both ends
    std::size_t const over = ids.size() - most, head = how == truncation::left ? 0 : how == truncation::right ? most : most / 2;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(head), ids.begin() + static_cast<std::ptrdiff_t>(head + over));
  };
  one(row.prompt, o.max_prompt_length, "prompt", o.truncate);
  one(row.response, o.max_response_length, "response", truncation::right);
  one(row.rejected, o.max_response_length, "rejected answer", truncation::right);
  return is;
}

class dataset {
 public:
  struct counts {
    std::size_t read = 0, filtered = 0, truncated = 0;  // samples in the files, left out as too long, cut
    std::size_t not_chosen = 0;                         // left out beyond max_samples
  };

  dataset() = default;
  // words: null if all rows are token ids; it must outlive the data set
  dataset(std::span<path const> files, dataset_options options, tokenizer const* words) : options_(std::move(options)), words_(words) {
    for (path const& file : files) {
      files_.push_back({file, open_read(file), {}, rows_.size(), 0});
      files_.back().seen = stamp_of(files_.back());
      for_each_line(file, [&](std::string_view text, std::size_t line, std::uint64_t offset) { index(text, line, offset); });
      files_.back().rows = rows_.size() - files_.back().first;
    }
    if (count_.read == 0) refuse("{}: the data set is empty", files.empty() ? "data" : files[0].string());
    if (rows_.empty())
      refuse("{}: all {} rows were left out: their prompts are longer than {} tokens", files[0].string(), count_.read,
             options_.max_prompt_length);
    if (options_.max_samples >= 0) choose(static_cast<std::size_t>(options_.max_samples));
    rows_.shrink_to_fit();
  }
  std::size_t size() const { return rows_.size(); }
  counts const& counted() const { return count_; }
  // Rows of a file stand together, in the order of the files.
  std::size_t files() const { return files_.size(); }
  std::size_t first_of(std::size_t file) const { return files_[file].first; }
  std::size_t rows_of(std::size_t file) const { return files_[file].rows; }

  data_row row(std::size_t i) const {  // several threads may read at the same time
    place const& at = rows_[i];
    std::size_t file = files_.size() - 1;
    while (files_[file].first > i) --file;
    source const& from = files_[file];
    if (!(stamp_of(from) == from.seen))
      refuse("{} has changed since the run began; the rows that were checked are gone", from.file.string());
    std::string text(at.bytes, '\0');
    read_at(from.fd, from.file, at.offset, text.data(), text.size());
    auto rows = parse_rows(text, options_, words_, from.file, at.line);
    data_row& row = rows.at(at.sample);
    fit(row, options_, from.file);
    return std::move(row);
  }

 private:
  struct place {
    std::uint64_t offset : 48, sample : 16;  // sample: of those of this line
    std::uint32_t bytes, line;
  };
  struct stamp {
    std::int64_t bytes = 0, seconds = 0, nanoseconds = 0;
    bool operator==(stamp const&) const = default;
  };
  struct source {
    path file;
    descriptor fd;
    stamp seen;
    std::size_t first, rows;
  };

  dataset_options options_;
  tokenizer const* words_ = nullptr;
  std::vector<source> files_;
  std::vector<place> rows_;
  counts count_;

  static stamp stamp_of(source const& from) {
    struct stat about;
    if (::fstat(from.fd.get(), &about) != 0) refuse_file("look at", from.file);
    return {about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
  }
  void choose(std::size_t most) {  // what is left keeps its order
    if (most >= rows_.size()) return;
    count_.not_chosen = rows_.size() - most;
    std::vector<bool> chosen(rows_.size());
    for (std::size_t k = 0; k < most; ++k)
      chosen[options_.choose_at_random ? static_cast<std::size_t>(shuffled(k, chosen.size(), 0, options_.seed)) : k] = true;
    std::size_t left = 0;
    for (source& file : files_) {
      std::size_t const first = left;
      for (std::size_t i = file.first; i < file.first + file.rows; ++i)
        if (chosen[i]) rows_[left++] = rows_[i];
      file.first = first, file.rows = left - first;
    }
    rows_.resize(most);
  }
  void index(std::string_view text, std::size_t line, std::uint64_t offset) {
    auto rows = parse_rows(text, options_, words_, files_.back().file, line);
    if (rows.size() > 0xffff || line > 0xffffffff) refuse("{}:{}: too many lines or turns", files_.back().file.string(), line);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fitted const is = fit(rows[i], options_, files_.back().file);
      ++count_.read, count_.filtered += is == fitted::too_long, count_.truncated += is == fitted::cut;
      if (is != fitted::too_long) rows_.push_back({offset, i, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(line)});
    }
  }
};

}  // namespace weft::io
