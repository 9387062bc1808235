// real_model [FOLDER]: compares with what transformers computed for a model too large to ship. FOLDER (or WEFT_REAL_MODEL) holds the model
// and golden.jsonl, as tests/tools/real_model.py makes them; docs/real_model.md tells how. Without a folder the test is skipped.
//   golden.jsonl: a chat a line. messages; prompt_ids and text as rendered; response_ids, the greedy answer; log_probs of the ids after the
//   first of prompt and response; runner_up: for each id of the response the second best id, and how far its logit is below.
//   --save DIR writes the model as weft saves it; --speed N instead prints seconds of greedy answers, N at a time, one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include <program/program.hpp>
#include <weft/io/dataset.hpp>
#include <weft/kernels/head.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/rollout/generate.hpp>
#include <weft/train/model_files.hpp>

namespace {
using namespace weft;
using ids = std::vector<i32>;

constexpr double tie = 1e-3;              // logits that differ by less may change places
constexpr double most_difference = 1e-3;  // of a log-prob

struct chat {
  io::json messages;
  std::string text;
  ids prompt, response, runner_up;
  std::vector<double> log_probs, margins;  // of prompt and response from the second id on; of each id of the response
};

struct loaded {
  train::model_files files;
  model::config c;
  std::unique_ptr<io::tokenizer> words;
  std::vector<float> weights, rope;
  kernels::threads pool;
  kernels::cpu_context on{&pool};

  explicit loaded(io::path const& folder) : files(folder, 0, false), c(files.config()), words(io::read_tokenizer(folder)) {
    weights.resize(model::parameter_count(c));
    files.load(0, weights.data());
  }
  void positions(size_t count) {
    rope.resize(count * size_t(c.head_dim));
    model::fill_rope_table(c, count, rope.data());
  }
};

std::vector<chat> read_golden(io::path const& file) {
  std::vector<chat> chats;
  io::for_each_line(file, [&](std::string_view line, size_t number) {
    io::json const row = io::parse_json(line, file.string(), number);
    std::string const at = fmt::format("{}:{}", file.string(), number);
    auto const list = [&](char const* key) {
      io::json const& value = row.at(key, at);
      if (!value.as_array()) io::refuse("{}: {} must be a list", at, key);
      return *value.as_array();
    };
    auto const integers = [&](char const* key) {
      ids out;
      for (io::json const& id : list(key)) out.push_back(i32(id.to_int()));
      return out;
    };
    auto const numbers = [&](char const* key) {
      std::vector<double> out;
      for (io::json const& x : list(key)) out.push_back(x.to_double());
      return out;
    };
    chats.push_back({row.at("messages", at), io::string_or(row, "text", "", at), integers("prompt_ids"), integers("response_ids"),
                     integers("runner_up"), numbers("log_probs"), numbers("margins")});
  });
  return chats;
}

// Greedy answers of up to `most` tokens, `at_once` together.
std::vector<ids> greedy(loaded& m, std::vector<chat> const& chats, size_t most, bool may_stop, size_t at_once) {
  std::vector<ids> answers;
  ids const stops = io::read_eos_ids(m.files.folder(), m.files.found());
  for (size_t first = 0; first < chats.size(); first += at_once) {
    size_t const n = std::min(at_once, chats.size() - first);
    size_t longest = 0;
    for (size_t i = 0; i < n; ++i) longest = std::max(longest, chats[first + i].prompt.size());
    ids prompts(n * longest), lengths(n), out(n * most), counts(n);
    for (size_t i = 0; i < n; ++i) {
      std::copy(chats[first + i].prompt.begin(), chats[first + i].prompt.end(), prompts.begin() + long(i * longest));
      lengths[i] = i32(chats[first + i].prompt.size());
    }
    std::vector<u32> draws(n);
    std::vector<float> log_probs(n * most), kept(n * most), entropies(n * most);
    std::vector<rollout::finish> reasons(n);
    kernels::sampling how;
    how.temperature = 0;
    rollout::request<float> r;
    r.prompts = i32(n), r.prompt_capacity = i32(longest), r.prompt_ids = prompts.data(), r.prompt_lengths = lengths.data();
    r.draws = draws.data(), r.sampling = &how;
    if (may_stop) r.stop.ids = stops.data(), r.stop.id_count = i32(stops.size());
    rollout::settings s;
    s.slots = i32(n), s.context = i32(longest + most);
    s.pages = rollout::most_pages(s);
    auto const room = rollout::workspace_sizes_of<float>(s, m.c);
    ids ints(room.ints);
    std::vector<float> reals(room.reals), logits(room.logits), kv(room.pool);
    rollout::generate<float, float>(m.on, rollout::policy<float>{&m.c, m.rope.data(), m.weights.data()}, r, s,
                                    {out.data(), log_probs.data(), kept.data(), entropies.data(), counts.data(), reasons.data(), i32(most)},
                                    {ints.data(), reals.data(), logits.data(), kv.data()});
    for (size_t i = 0; i < n; ++i) answers.emplace_back(out.begin() + long(i * most), out.begin() + long(i * most) + counts[i]);
  }
  return answers;
}

// Of the ids after the first.
std::vector<float> log_probs_of(loaded& m, ids const& text) {
  size_t const tokens = text.size(), hidden = size_t(m.c.hidden), vocab = size_t(m.c.vocab), chunk = 64;
  ids places(tokens), cu{0, i32(tokens)};
  for (size_t i = 0; i < tokens; ++i) places[i] = i32(i);
  std::vector<float> scratch(model::activation_count(m.c, tokens, true)), states(tokens * hidden), ones(tokens, 1.0f),
      logits(chunk * vocab), log_prob(tokens - 1), entropy(tokens - 1);
  model::forward(m.on, m.c, true, m.rope.data(), m.weights.data(), model::batch_view{text.data(), places.data(), cu.data(), i32(tokens), 1},
                 scratch.data(), states.data());
  kernels::head_log_probs(m.on, tokens - 1, hidden, vocab, states.data(), model::head_weight(m.c, m.weights.data()), text.data() + 1,
                          ones.data(), chunk, logits.data(), log_prob.data(), entropy.data());
  return log_prob;
}

struct counts {
  int passed = 0, failed = 0;
  void check(bool good, std::string const& what) {
    ++(good ? passed : failed);
    if (!good) fmt::print("FAILED {}\n", what);
  }
};

int compare(loaded& m, std::vector<chat> const& chats, size_t most) {
  counts count;
  double difference = 0;
  size_t equal = 0, ties = 0, tokens = 0;
  auto const answers = greedy(m, chats, most, true, chats.size());
  for (size_t i = 0; i < chats.size(); ++i) {
    chat const& c = chats[i];
    auto const rendered = m.words->render(c.messages, {.add_generation_prompt = true});
    count.check(rendered && *rendered == c.text, fmt::format("chat {}: the rendered text", i));
    count.check(m.words->encode(c.text) == c.prompt, fmt::format("chat {}: the ids of the prompt", i));

    auto const [ours, theirs] = std::mismatch(answers[i].begin(), answers[i].end(), c.response.begin(), c.response.end());
    bool const same = ours == answers[i].end() && theirs == c.response.end();
    size_t const at = size_t(theirs - c.response.begin());
    bool const tied = !same && at < c.response.size() && ours != answers[i].end() && *ours == c.runner_up[at] && c.margins[at] <= tie;
    count.check(same || tied, fmt::format("chat {}: greedy answers differ at token {}", i, at));
    equal += same, ties += tied;

    ids whole = c.prompt;
    whole.insert(whole.end(), c.response.begin(), c.response.end());
    auto const scored = log_probs_of(m, whole);
    if (scored.size() != c.log_probs.size())
      io::refuse("golden.jsonl: chat {} has {} log-probs for {} ids", i, c.log_probs.size(), whole.size());
    double worst = 0;
    for (size_t k = 0; k < scored.size(); ++k) worst = std::max(worst, std::abs(double(scored[k]) - c.log_probs[k]));
    count.check(worst <= most_difference, fmt::format("chat {}: log-probs differ by {:.2e}", i, worst));
    difference = std::max(difference, worst), tokens += scored.size();
  }
  fmt::print("{} chats: {} greedy answers equal, {} part at a tie; {} log-probs, largest difference {:.1e}\n", chats.size(), equal, ties,
             tokens, difference);
  fmt::print("{} passed, {} failed\n", count.passed, count.failed);
  return count.failed == 0 ? 0 : 1;
}
}  // namespace

int main(int argc, char** argv) {
  std::string folder, save;
  std::int64_t speed = 0, some = 0, most = 64;
  program::about const about{"real_model", "Compare a model with what transformers computed for it"};
  return program::main(argc, argv, about,
                       {{"folder", &folder, "the model and golden.jsonl (default: WEFT_REAL_MODEL)"},
                        {"--save", &save, "write the model there as weft saves it"},
                        {"--speed", &speed, "time greedy answers, so many at once"},
                        {"--chats", &some, "take the first ones only; 0: all"},
                        {"--max-new-tokens", &most, "of an answer"}},
                       [&] {
                         char const* const named = std::getenv("WEFT_REAL_MODEL");
                         if (folder.empty() && named) folder = named;
                         if (folder.empty()) {
                           fmt::print("skipped: WEFT_REAL_MODEL names no folder; docs/real_model.md tells how to make one\n");
                           return 77;
                         }
                         auto chats = read_golden(io::path(folder) / "golden.jsonl");
                         if (some > 0) chats.resize(std::min(chats.size(), size_t(some)));
                         loaded m{folder};
                         size_t longest = 0;
                         for (chat const& c : chats)
                           longest = std::max(longest, c.prompt.size() + std::max(c.response.size(), size_t(most)));
                         m.positions(longest);
                         if (!save.empty()) train::save_model(save, m.files, m.weights.data());
                         if (speed == 0) return compare(m, chats, size_t(most));
                         auto const from = std::chrono::steady_clock::now();
                         size_t tokens = 0;
                         for (ids const& answer : greedy(m, chats, size_t(most), false, size_t(speed))) tokens += answer.size();
                         double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
                         fmt::print("{{\"tokens\": {}, \"seconds\": {}}}\n", tokens, seconds);
                         return 0;
                       });
}
