// Which rows a step trains on, and rows read ahead.
#include <map>
#include <set>

#include "lab.hpp"
using namespace lab;

TEST_CASE("without weights every row comes once in an epoch") {
  train::row_order const order{20, 6, 7};
  for (u64 epoch = 0; epoch < 3; ++epoch) {
    std::set<u64> seen;
    for (u64 step = epoch * 3; step < epoch * 3 + 3; ++step)
      for (u64 i = 0; i < 6; ++i) {
        CHECK(order.at(step, i).epoch == epoch);
        seen.insert(order.at(step, i).row);
      }
    CHECK(seen.size() == 18);
  }
}
TEST_CASE("with weights the draws so far hold the shares, and every file its epochs") {
  train::row_order order{60, 7, 3, true, {{0, 30, 1}, {30, 10, 5}, {40, 20, 2.5}}};
  std::map<std::pair<u64, u64>, int> seen;
  std::vector<size_t> counts(3);
  for (u64 draw = 0; draw < 3500; ++draw) {
    auto const at = order.at(draw / 7, draw % 7);
    size_t const file = at.row < 30 ? 0 : at.row < 40 ? 1 : 2;
    CHECK(++seen[{at.epoch, at.row}] == 1);
    CHECK(at.epoch == counts[file] / order.sources[file].rows);
    ++counts[file];
    double const weights[] = {1 / 8.5, 5 / 8.5, 2.5 / 8.5};
    for (size_t f = 0; f < 3; ++f) CHECK(std::abs(double(counts[f]) - weights[f] * double(draw + 1)) <= 2);
  }
  train::row_order one = order;
  one.sources = {{0, 60, 3}};
  for (u64 draw = 0; draw < 200; ++draw) CHECK(one.at(draw / 7, draw % 7).row == io::shuffled(draw % 60, 60, draw / 60, 3));
}
TEST_CASE("rows are the same whether they were read ahead, held or read when asked for") {
  folder at;
  options_for(at);
  io::path const file = at.path / "train.jsonl";
  auto const words = io::read_tokenizer(at.path / "model");
  io::dataset_options o;
  o.vocab = 257;
  io::dataset const data({&file, 1}, o, words.get());
  train::row_feed feed(data);
  auto const check = [&](std::vector<u64> const& rows, std::vector<u64> next) {
    auto const taken = feed.take(rows, std::move(next));
    REQUIRE(taken.size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(taken[i]->extra == data.row(rows[i]).extra);
      CHECK(feed.at(rows[i]) == taken[i]);  // held, not read again
    }
  };
  check({3, 1, 4, 1, 5}, {9, 2, 6});
  check({9, 2, 6}, {7, 7, 8});  // foreseen
  check({9, 8, 30}, {});        // held, foreseen and new
  CHECK(feed.at(39)->extra == data.row(39).extra);
  CHECK(feed.waited() > 0);
  CHECK(feed.waited() == 0);
  feed.take({}, {1, 2});  // never fetched
}
TEST_CASE("a run says how long its steps waited for data; shares of files are checked and kept") {
  folder at;
  auto o = options_for(at);
  write_rows(at.path / "more.jsonl", 5, 50);
  o.data.train_files.push_back((at.path / "more.jsonl").string());
  o.data.train_weights = {"1", "2"};
  std::vector<int> from(2);
  run(o, [&](train::answer const& a) {
    ++from[a.row.extra.find("\"index\":5") != a.row.extra.npos && a.row.extra.find("\"index\":5}") == a.row.extra.npos];
    return digits(a);
  });
  CHECK(from[1] == 12 * 4);  // two thirds of 3 steps of 6 prompts with 4 samples
  CHECK(metric(at.path / "out", "timing_s/wait_data").size() == 3);
  auto bad = options_for(at, "bad");
  for (auto const& weights : {std::vector<std::string>{"1", "2"}, {"0"}, {"x"}, {"-1"}, {"nan"}}) {
    bad.data.train_weights = weights;
    CHECK_THROWS_WITH_AS(run(bad), doctest::Contains("data.train_weights"), io::input_error);
  }
}

TEST_CASE("prompts are rendered as data.apply_chat_template_kwargs says; rows that are too long are counted") {
  folder at;
  auto o = options_for(at);
  auto c = tiny_config();
  c.max_positions = 512;
  write_model(at.path / "model", c);
  io::write_file(at.path / "model" / "chat_template.jinja", text_of("tests/data/chat_templates/qwen3.jinja"));
  std::ofstream rows(at.path / "chats.jsonl");
  for (int i = 0; i < 8; ++i)
    rows << R"({"prompt":[{"role":"user","content":")" << std::string(size_t(i < 2 ? 200 : 9), 'x') << R"("}],"ground_truth":"1"})" << '\n';
  rows.close();
  o.data.train_files = {(at.path / "chats.jsonl").string()}, o.data.val_files = {};
  o.data.max_prompt_length = 120, o.data.filter_overlong_prompts = true, o.trainer.total_training_steps = 1;
  for (bool thinking : {true, false}) {
    o.data.chat.enable_thinking = thinking;
    o.trainer.default_local_dir = (at.path / (thinking ? "thinks" : "does not")).string();
    int calls = 0;
    run(o, [&](train::answer const& a) {
      CHECK(a.row.prompt_text.ends_with(thinking ? "<|im_start|>assistant\n" : "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
      ++calls;
      return digits(a);
    });
    CHECK(calls == 24);
  }
  CHECK(train::trainer<rl::grpo<>>(o).plan().find("6 rows of training data (2 of 8 left out as too long)") != std::string::npos);
}
