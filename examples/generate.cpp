// Answers of a model: generate --model DIR --prompt TEXT prints one; generate --model DIR --input F.jsonl --output G.jsonl answers each row.
// A row has prompt (text, or messages), messages or prompt_ids. Its answer has prompt_ids, ids, text, log_probs (of ids, over the whole
// vocabulary at the temperature) and finish_reason: stop, length, aborted (a logit was not finite), or prompt_too_long, which is counted.
// A text begins with the tokenizer's begin-of-text id where it has one; messages are written by the chat template.
#include <program/loaded_model.hpp>
#include <program/program.hpp>

#include <weft/io/data_row.hpp>
#include <weft/rollout/generate.hpp>

#include <algorithm>
#include <cstdio>

namespace {
namespace io = weft::io;
using namespace weft;
using ids = std::vector<i32>;

struct settings {
  std::string model, prompt, input, output;
  std::int64_t max_new_tokens = 128, min_new_tokens = 0, top_k = -1, seed = 0, kv_tokens = 16384;
  double temperature = 1, top_p = 1;
};

struct answer {
  ids prompt, response;
  std::vector<float> log_probs;
  char const* reason;
};

struct answerer {
  settings const& s;
  program::loaded_model& m;
  ids stops;
  u32 done = 0;  // rows answered: the draw number of the next, so that no answer depends on what is answered together
  static constexpr size_t at_once = 64;

  answerer(settings const& given, program::loaded_model& model)
      : s(given), m(model), stops(io::read_eos_ids(m.files.folder(), m.files.found())) {
    if (m.config.labels > 0) io::refuse("{}: it has a score head; a language model is needed", s.model);
    if (!m.words) return;
    for (i32 id : m.words->eos_ids())
      if (id < m.config.vocab && std::find(stops.begin(), stops.end(), id) == stops.end()) stops.push_back(id);
  }

  // A text that no chat template wrote begins as the tokenizer begins texts (Llama: begin-of-text).
  ids prompt_of(io::json const& row, std::string const& at) const {
    if (!row.as_object()) io::refuse("{}: the row must be a JSON object", at);
    io::dataset_options options;
    options.vocab = m.config.vocab;
    io::detail::row_reader const read{options, m.words.get(), at};
    io::json const* const text = row.find("prompt_ids") ? nullptr : row.find("prompt");
    io::data_row out;
    if (text && text->as_string() && m.words) out.prompt = m.words->begin_ids();
    if (text && text->as_string()) read.encode(*text->as_string(), "prompt", out.prompt);
    else read.read_prompt(row, out);
    if (out.prompt.empty()) io::refuse("{}: the prompt is empty", at);
    return std::move(out.prompt);
  }
  bool fits(ids const& prompt) const { return prompt.size() < size_t(m.config.max_positions); }

  std::vector<answer> operator()(std::vector<ids> prompts) {
    std::vector<answer> answers;
    size_t const n = prompts.size();
    size_t longest = 0;
    for (ids const& p : prompts)
      if (fits(p)) longest = std::max(longest, p.size());
    rollout::settings how;
    how.slots = i32(std::min(n, at_once));
    how.context = i32(std::min(longest + size_t(s.max_new_tokens), size_t(m.config.max_positions)));
    how.pages = std::min(rollout::most_pages(how), i32(kv::pages_for(size_t(std::max<std::int64_t>(s.kv_tokens, how.context)))));
    size_t const most = std::min(size_t(s.max_new_tokens), size_t(how.context));
    ids rows(n * longest), lengths(n), out(n * most), counts(n);
    std::vector<u32> draws(n);
    for (size_t i = 0; i < n; ++i) {
      draws[i] = done++;
      if (fits(prompts[i]))
        std::copy(prompts[i].begin(), prompts[i].end(), rows.begin() + long(i * longest)), lengths[i] = i32(prompts[i].size());
    }
    std::vector<float> log_probs(n * most), kept(n * most), entropies(n * most);
    std::vector<rollout::finish> reasons(n);
    kernels::sampling sampling;
    sampling.temperature = f32(s.temperature), sampling.top_p = f32(s.top_p), sampling.top_k = i32(s.top_k);
    sampling.min_new_tokens = i32(s.min_new_tokens);
    rollout::request<float> r;
    r.prompts = i32(n), r.prompt_capacity = i32(longest), r.prompt_ids = rows.data(), r.prompt_lengths = lengths.data();
    r.draws = draws.data(), r.seed = u64(s.seed), r.sampling = &sampling;
    r.stop.ids = stops.data(), r.stop.id_count = i32(stops.size());
    if (m.words) r.sampled_ids = std::min(m.words->size(), m.config.vocab);
    if (longest > 0) {
      m.hold_positions(size_t(how.context));
      auto const room = rollout::workspace_sizes_of<float>(how, m.config);
      ids ints(room.ints);
      std::vector<float> reals(room.reals), logits(room.logits), pages(room.pool);
      rollout::generate<float, float>(
          m.on, rollout::policy<float>{&m.config, m.rope.data(), m.weights.data()}, r, how,
          {out.data(), log_probs.data(), kept.data(), entropies.data(), counts.data(), reasons.data(), i32(most)},
          {ints.data(), reals.data(), logits.data(), pages.data()});
    }
    for (size_t i = 0; i < n; ++i) {
      long const at = long(i * most), count = counts[i];
      char const* reason = !fits(prompts[i])                        ? "prompt_too_long"
                           : rollout::is_stop_id(reasons[i])        ? "stop"
                           : reasons[i] == rollout::finish::aborted ? "aborted"
                                                                    : "length";
      answers.push_back({std::move(prompts[i]), ids(out.begin() + at, out.begin() + at + count),
                         std::vector<float>(log_probs.begin() + at, log_probs.begin() + at + count), reason});
    }
    return answers;
  }
  std::string text_of(answer const& a) const { return m.words ? m.words->decode(a.response, true) : std::string(); }
};

io::json row_of(answer const& a, answerer const& by) {
  io::json row = io::json::object{{"prompt_ids", program::ids_json(a.prompt)},
                                  {"ids", program::ids_json(a.response)},
                                  {"log_probs", program::numbers(a.log_probs.data(), a.log_probs.size())},
                                  {"finish_reason", a.reason}};
  if (by.m.words) row.set("text", by.text_of(a));
  return row;
}

int run(settings const& s) {
  if (s.prompt.empty() == s.input.empty()) io::refuse("give --prompt, or --input and --output");
  if (s.input.empty() != s.output.empty()) io::refuse("--input and --output belong together");
  auto const between = [](char const* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most) io::refuse("{} is {}; choose {} to {}", name, value, least, most);
  };
  between("--max-new-tokens", s.max_new_tokens, 1, 1 << 24);
  between("--min-new-tokens", s.min_new_tokens, 0, s.max_new_tokens);
  between("--top-k", s.top_k, -1, 1 << 30);
  between("--seed", s.seed, 0, INT64_MAX);
  between("--kv-tokens", s.kv_tokens, 64, 1 << 28);
  program::loaded_model model(s.model);
  answerer answers(s, model);
  if (!s.prompt.empty()) {
    ids const prompt = answers.prompt_of(io::json::object{{"prompt", s.prompt}}, "--prompt");
    if (!answers.fits(prompt))
      io::refuse("the prompt has {} tokens; the model's {} leave no room for an answer", prompt.size(), model.config.max_positions);
    fmt::print("{}\n", answers.text_of(answers({prompt})[0]));
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  io::atomic_file out(s.output);
  std::vector<ids> waiting;
  size_t rows = 0, refused = 0, aborted = 0;
  auto const answer_waiting = [&] {
    if (waiting.empty()) return;
    for (answer const& a : answers(std::move(waiting))) {
      refused += std::string_view(a.reason) == "prompt_too_long", aborted += std::string_view(a.reason) == "aborted";
      out.write(row_of(a, answers).dump() + "\n");
    }
    waiting.clear();
  };
  io::for_each_line(s.input, [&](std::string_view line, size_t number) {
    std::string const at = fmt::format("{}:{}", s.input, number);
    io::json const row = io::parse_json(line, s.input, number, {.bytes = io::most_line_bytes});
    try {
      waiting.push_back(answers.prompt_of(row, at));
    } catch (io::input_error const& e) {  // a template's refusal does not know the line
      std::string_view const said = e.what();
      io::refuse("{}{}", said.starts_with(at) ? "" : at + ": ", said);
    }
    if (!answers.fits(waiting.back()))
      fmt::print(stderr, "generate: {}: the prompt has {} tokens; the model's {} leave no room for an answer\n", at, waiting.back().size(),
                 model.config.max_positions);
    if (++rows; waiting.size() == 4 * answerer::at_once) answer_waiting();
  });
  answer_waiting();
  if (rows == 0) io::refuse("{} has no rows", s.input);
  out.commit();
  fmt::print("{} rows, {} with a prompt that is too long, {} aborted\n", rows, refused, aborted);
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  settings s;
  return program::main(argc, argv, {"generate", "Answers of a model, for one prompt or for JSON lines"},
                       {{"--model", &s.model, "Hugging Face folder", true},
                        {"--prompt", &s.prompt, "a text; its answer is printed"},
                        {"--input", &s.input, "JSON lines with prompt, messages or prompt_ids"},
                        {"--output", &s.output, "JSON lines with prompt_ids, ids, text, log_probs, finish_reason"},
                        {"--max-new-tokens", &s.max_new_tokens, "longest answer, in tokens"},
                        {"--min-new-tokens", &s.min_new_tokens, "tokens before which no answer ends"},
                        {"--temperature", &s.temperature, "0: the best token each time"},
                        {"--top-p", &s.top_p, "draw from the best tokens of so much probability"},
                        {"--top-k", &s.top_k, "draw from so many best tokens; -1: all"},
                        {"--seed", &s.seed, "of all draws"},
                        {"--kv-tokens", &s.kv_tokens, "room for keys and values, in tokens"}},
                       [&] { return run(s); });
}
