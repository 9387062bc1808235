// What a model thinks of given ids: score --model DIR --input F.jsonl --output G.jsonl. A row has ids, T of them; its answer has log_probs
// and entropy, T - 1 values each, for ids[1:]. A model with a score head gives scores instead, [labels] at the last id. Rows longer than the
// model's positions get an error in their place, and are counted.
#include <program/loaded_model.hpp>
#include <program/program.hpp>

#include <weft/io/data_row.hpp>
#include <weft/kernels/head.hpp>
#include <weft/model/forward.hpp>
#include <weft/model/heads.hpp>

#include <cmath>

namespace {
namespace io = weft::io;
using namespace weft;
using ids = std::vector<i32>;

struct settings {
  std::string model, input, output;
  std::int64_t batched_tokens = 2048;
  double temperature = 1;
};
struct row {
  std::string at;  // file:line
  ids text;
};

io::json finite(std::vector<float> const& values, size_t first, size_t count, std::string const& at) {
  for (size_t i = first; i < first + count; ++i)
    if (!std::isfinite(values[i])) io::refuse("{}: a logit is NaN or infinite; are the weights whole?", at);
  return program::numbers(values.data() + first, count);
}

// Rows that stand packed one behind the other in one forward pass. None depends on what else is in it.
std::vector<io::json> score(program::loaded_model& m, std::vector<row> const& rows, float temperature) {
  ids text, places, cu{0};
  for (row const& r : rows) {
    text.insert(text.end(), r.text.begin(), r.text.end());
    for (size_t i = 0; i < r.text.size(); ++i) places.push_back(i32(i));
    cu.push_back(i32(text.size()));
    m.hold_positions(r.text.size());
  }
  size_t const tokens = text.size(), hidden = size_t(m.config.hidden), vocab = size_t(m.config.vocab), chunk = 64;
  std::vector<float> scratch(model::activation_count(m.config, tokens, true)), states(tokens * hidden);
  model::forward(m.on, m.config, true, m.rope.data(), m.weights.data(),
                 model::batch_view{text.data(), places.data(), cu.data(), i32(tokens), i32(rows.size())}, scratch.data(), states.data());
  std::vector<io::json> out;
  if (size_t const labels = size_t(m.config.labels); labels > 0) {
    std::vector<float> scores(tokens * labels);
    model::score_head(m.on, m.config, tokens, states.data(), m.weights.data(), scores.data());
    for (size_t i = 0; i < rows.size(); ++i)
      out.push_back(io::json::object{{"scores", finite(scores, (size_t(cu[i + 1]) - 1) * labels, labels, rows[i].at)}});
    return out;
  }
  ids targets(text.begin() + 1, text.end());  // the last of a row predicts nothing: its value is not used
  targets.push_back(0);
  std::vector<float> inverse(tokens, 1 / temperature), logits(chunk * vocab), log_probs(tokens), entropy(tokens);
  kernels::head_log_probs(m.on, tokens, hidden, vocab, states.data(), model::head_weight(m.config, m.weights.data()), targets.data(),
                          inverse.data(), chunk, logits.data(), log_probs.data(), entropy.data());
  for (size_t i = 0; i < rows.size(); ++i)
    out.push_back(io::json::object{{"log_probs", finite(log_probs, size_t(cu[i]), rows[i].text.size() - 1, rows[i].at)},
                                   {"entropy", finite(entropy, size_t(cu[i]), rows[i].text.size() - 1, rows[i].at)}});
  return out;
}

int run(settings const& s) {
  if (s.batched_tokens < 1 || s.batched_tokens > 1 << 24) io::refuse("--batched-tokens is {}; choose 1 to {}", s.batched_tokens, 1 << 24);
  if (!(s.temperature >= 1e-4 && s.temperature <= 1e4)) io::refuse("--temperature is {}; choose 0.0001 to 10000", s.temperature);
  program::loaded_model m(s.model);
  io::atomic_file out(s.output);
  std::vector<row> waiting;
  size_t rows = 0, refused = 0, tokens = 0;
  auto const score_waiting = [&] {
    if (waiting.empty()) return;
    for (io::json const& answer : score(m, waiting, float(s.temperature))) out.write(answer.dump() + "\n");
    waiting.clear(), tokens = 0;
  };
  io::for_each_line(s.input, [&](std::string_view line, size_t number) {
    row r{fmt::format("{}:{}", s.input, number), {}};
    io::json const given = io::parse_json(line, s.input, number, {.bytes = io::most_line_bytes});
    if (!given.as_object()) io::refuse("{}: the row must be a JSON object", r.at);
    r.text = io::detail::token_ids(given.at("ids", r.at), "ids", m.config.vocab, r.at);
    if (r.text.empty()) io::refuse("{}: ids is empty", r.at);
    ++rows;
    if (r.text.size() > size_t(m.config.max_positions)) {
      score_waiting();
      std::string const error = fmt::format("{} ids; the model has {} positions", r.text.size(), m.config.max_positions);
      fmt::print(stderr, "score: {}: {}\n", r.at, error);
      out.write(io::json(io::json::object{{"error", error}}).dump() + "\n");
      ++refused;
      return;
    }
    if (tokens + r.text.size() > size_t(s.batched_tokens)) score_waiting();
    tokens += r.text.size();
    waiting.push_back(std::move(r));
  });
  score_waiting();
  if (rows == 0) io::refuse("{} has no rows", s.input);
  out.commit();
  fmt::print("{} rows, {} too long\n", rows, refused);
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  settings s;
  return program::main(argc, argv, {"score", "Log-probs and entropies of given ids, or scores of a model with a score head"},
                       {{"--model", &s.model, "Hugging Face folder", true},
                        {"--input", &s.input, "JSON lines with ids", true},
                        {"--output", &s.output, "JSON lines with log_probs and entropy of ids[1:], or scores", true},
                        {"--temperature", &s.temperature, "logits are divided by it"},
                        {"--batched-tokens", &s.batched_tokens, "of one forward pass; one longer row is a pass of its own"}},
                       [&] { return run(s); });
}
