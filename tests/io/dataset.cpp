// dataset.cpp — rows in the forms of verl and TRL, faults with file and line, length filters, and the shuffle.
#include <weft/io/dataset.hpp>

#include <numeric>
#include <set>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;
using weft::i32;

namespace {
struct chat_tokenizer : byte_tokenizer {
  using byte_tokenizer::byte_tokenizer;
  std::optional<std::string> render(json const& messages, chat_options const& how) const override {
    std::string text;
    for (json const& m : *messages.as_array()) text += "[" + *m.find("role")->as_string() + "]" + *m.find("content")->as_string();
    return text + (how.add_generation_prompt ? "[assistant]" : "");
  }
};
struct lab {
  io_test::temporary_folder folder;
  path file = folder / "data.jsonl";
  byte_tokenizer plain{byte_tokenizer_json({"<|endoftext|>"}), "t"};
  chat_tokenizer chat{byte_tokenizer_json({"<|endoftext|>"}), "t"};
  dataset_options options;
  lab() {
    options.vocab = 257;
    plain.set_eos({256});
  }
  dataset read(std::string const& text, tokenizer const* words) {
    io_test::overwrite(file, text);
    return dataset({&file, 1}, options, words);
  }
  dataset read(std::string const& text) { return read(text, &plain); }
};
}  // namespace

TEST_CASE("dataset: verl's row and TRL's row") {
  lab l;
  auto const verl =
      l.read(R"({"data_source":"arithmetic","prompt":[{"role":"user","content":"1+1="}],)"
             R"("ability":"math","reward_model":{"style":"rule","ground_truth":"2"},"extra_info":{"split":"train","index":0}})",
             &l.chat);
  REQUIRE(verl.size() == 1);
  CHECK(verl.row(0).prompt_text == "[user]1+1=[assistant]");
  CHECK(l.chat.decode(verl.row(0).prompt) == verl.row(0).prompt_text);
  CHECK(verl.row(0).data_source == "arithmetic");
  CHECK(verl.row(0).ground_truth == "2");
  CHECK(verl.row(0).extra ==
        R"({"ability":"math","reward_model":{"style":"rule","ground_truth":"2"},"extra_info":{"split":"train","index":0}})");
  auto const trl = l.read(R"({"prompt":"1+1=","ground_truth":2,"task":"add"})");
  CHECK(trl.row(0).prompt == std::vector<i32>{'1', '+', '1', '='});
  CHECK(trl.row(0).ground_truth == "2");
  CHECK(trl.row(0).data_source.empty());
  CHECK(trl.row(0).extra == R"({"task":"add"})");
  auto const table =
      l.read(R"({"prompt":"1+1=","prompt_ids":null,"ground_truth":null,"reward_model":{"ground_truth":"2"},"data_source":null})");
  CHECK((table.row(0).prompt_text == "1+1=" && table.row(0).ground_truth == "2" && table.row(0).data_source.empty()));
  auto const ids = l.read(R"({"prompt_ids":[49,43]})");
  CHECK(ids.row(0).prompt_text == "1+");
  CHECK(l.read(R"({"prompt_ids":[49,43]})", nullptr).row(0).prompt.size() == 2);
  CHECK(l.read(R"({"messages":[{"role":"user","content":"x"}]})", &l.chat).row(0).prompt_text == "[user]x[assistant]");
}

TEST_CASE("dataset: supervised rows end with the end-of-text id") {
  lab l;
  l.options.kind = row_kind::supervised;
  for (char const* key : {"response", "completion", "answer"})
    CHECK(l.read(fmt::format(R"({{"prompt":"1+1=","{}":"2"}})", key)).row(0).response == std::vector<i32>{'2', 256});
  CHECK(l.read(R"({"prompt":"1+1=","response":[50]})").row(0).response == std::vector<i32>{'2'});
  CHECK_REFUSED(l.read(R"({"prompt":"1+1="})"), "data.jsonl:1: the row has no response, completion or answer");
  CHECK_REFUSED(l.read(R"({"prompt":"1+1=","response":[257]})"), "response holds '257'");
  l.options.response_key = "target";
  CHECK(l.read(R"({"prompt":"1+1=","target":"3","answer":"2"})").row(0).response == std::vector<i32>{'3', 256});
}

TEST_CASE("dataset: byte-order mark, CRLF, blank lines, a last line without end") {
  lab l;
  auto const d = l.read("\xef\xbb\xbf{\"prompt\":\"a\"}\r\n\r\n \t\n{\"prompt\":\"b\"}\n{\"prompt\":\"c\"}");
  REQUIRE(d.size() == 3);
  CHECK(d.row(1).line == 4);
  CHECK(d.row(2).line == 5);
  CHECK(d.row(2).prompt_text == "c");
  CHECK(l.read("\xef\xbb\xbf\r\n{\"prompt\":\"a\"}").size() == 1);
}

TEST_CASE("dataset: lines longer than a block of the reader") {
  lab l;
  l.options.max_prompt_length = 10'000'000;
  std::string const a(3'000'000, 'a'), b(1 << 20, 'b');
  auto const d = l.read("{\"prompt\":\"" + a + "\"}\n{\"prompt\":\"" + b + "\"}\n{\"prompt\":\"c\"}\n");
  REQUIRE(d.size() == 3);
  CHECK(d.row(0).prompt_text == a);
  CHECK(d.row(1).prompt_text == b);
  CHECK(d.row(2).line == 3);
}

TEST_CASE("dataset: faults name file and line") {
  lab l;
  std::string const good = "{\"prompt\":\"a\"}\n";
  CHECK_REFUSED(l.read(""), "data.jsonl: the data set is empty");
  CHECK_REFUSED(l.read("\n\n"), "data.jsonl: the data set is empty");
  CHECK_REFUSED(l.read(good + "{\"prompt\":\"a\""), "data.jsonl:2: not valid JSON");
  CHECK_REFUSED(l.read(good + good + "[1]"), "data.jsonl:3: the row must be a JSON object");
  CHECK_REFUSED(l.read(good + "{}"), "data.jsonl:2: the row has neither prompt nor messages nor prompt_ids");
  CHECK_REFUSED(l.read(good + "{\"prompt\":3}"), "data.jsonl:2: prompt must be a string or a list of messages");
  CHECK_REFUSED(l.read(good + "{\"prompt\":\"\"}"), "data.jsonl:2: the prompt is empty");
  CHECK_REFUSED(l.read(good + "{\"prompt_ids\":[1,257]}"), "data.jsonl:2: prompt_ids holds '257'; the vocabulary has the ids 0 to 256");
  CHECK_REFUSED(l.read(good + "{\"prompt_ids\":[-1]}"), "prompt_ids holds '-1'");
  CHECK_REFUSED(l.read(good + "{\"prompt_ids\":[1.5]}"), "prompt_ids holds '1.5'");
  CHECK_REFUSED(l.read(good + "{\"prompt_ids\":\"1\"}"), "prompt_ids must be a list of token ids");
  CHECK_REFUSED(l.read(good + R"({"prompt":[{"role":"user","content":"x"}]})"),
                "data.jsonl:2: the prompt is a list of messages, and the tokenizer has no chat template");
  CHECK_REFUSED(l.read(R"({"prompt":[{"role":"user"}]})", &l.chat), "a message needs content");
  CHECK_REFUSED(l.read(good + "{\"prompt\":\"a\",\"data_source\":7}"), "data.jsonl:2: data_source is '7'");
  CHECK_REFUSED(l.read(good + "{\"prompt\":\"a\",\n\"prompt\":\"b\"}"), "data.jsonl:2: not valid JSON");
  CHECK_REFUSED(l.read(good + "{\"prompt\":\"a\",\"prompt\":\"b\"}"), "data.jsonl:2: the key 'prompt' stands twice");
  CHECK_REFUSED(l.read(good, nullptr), "data.jsonl:1: the prompt is text, and there is no tokenizer");
  CHECK_REFUSED(l.read("{\"prompt\":\"\xff\"}"), "data.jsonl:1: not valid JSON");
  l.options.vocab = 100;
  CHECK_REFUSED(l.read("{\"prompt\":\"z\"}"), "token id 122, outside the model's vocabulary of 100");
  path const gone = l.folder / "gone.jsonl";
  CHECK_REFUSED(dataset({&gone, 1}, l.options, &l.plain), "cannot open");
  CHECK_REFUSED(dataset({&l.folder.path, 1}, l.options, &l.plain), "is not a regular file");
}

TEST_CASE("dataset: a line of 100 MB is refused while a third of it is held") {
  lab l;
  {
    descriptor const fd(::open(l.file.c_str(), O_WRONLY | O_CREAT, 0644));
    std::string const block(std::size_t{1} << 20, 'x');
    write_all(fd, l.file, "{}\n\"", 4);
    for (int i = 0; i < 100; ++i) write_all(fd, l.file, block.data(), block.size());
  }
  allocation::start();
  CHECK_REFUSED(for_each_line(l.file, [](std::string_view, std::size_t) {}), "data.jsonl:2: the line is longer than 33554432 bytes");
  CHECK(allocation::largest() < 70'000'000);
}

TEST_CASE("dataset: prompts that are too long are an error, filtered with a count, or cut") {
  lab l;
  std::string const text = "{\"prompt\":\"abcdefg\"}\n{\"prompt\":\"ab\"}\n";
  l.options.max_prompt_length = 4;
  CHECK_REFUSED(l.read(text),
                "data.jsonl:1: the prompt has 7 tokens, more than 4; raise the limit, filter_overlong_prompts=true, or truncation");
  for (auto const& [how, left] :
       {std::pair(truncation::left, "defg"), std::pair(truncation::right, "abcd"), std::pair(truncation::middle, "abfg")}) {
    l.options.truncate = how;
    auto const d = l.read(text);
    CHECK(l.plain.decode(d.row(0).prompt) == left);
    CHECK(d.counted().truncated == 1);
  }
  l.options.filter_overlong_prompts = true;
  auto const d = l.read(text);
  CHECK((d.counted().read == 2 && d.counted().filtered == 1 && d.counted().truncated == 0 && d.size() == 1));
  l.options.max_prompt_length = 1;
  CHECK_REFUSED(l.read(text), "all 2 rows were left out: their prompts are longer than 1 tokens");
}

TEST_CASE("dataset: a row that is asked for is the row that was checked, in any order and from several files") {
  lab l;
  std::string first = "\xef\xbb\xbf", second;
  for (int i = 0; i < 300; ++i)
    (i < 100 ? first : second) += fmt::format("{{\"prompt\":\"{:>{}}\"}}{}", i, i % 50 + 3, i % 3 ? "\n" : "\r\n\n");
  path const other = l.folder / "other.jsonl", files[] = {l.file, other};
  io_test::overwrite(l.file, first);
  io_test::overwrite(other, second);
  l.options.max_prompt_length = 40, l.options.filter_overlong_prompts = true;
  dataset const d(files, l.options, &l.plain);
  CHECK((d.counted().read == 300 && d.counted().filtered == 300 / 50 * 12 && d.size() == 300 - 72));
  CHECK((d.files() == 2 && d.first_of(1) == d.rows_of(0) && d.rows_of(0) == 76 && d.rows_of(1) == 152));
  for (std::size_t i = d.size(), number = 300; i-- > 0;) {
    while ((number - 1) % 50 + 3 > 40) --number;
    CHECK(d.row(i).prompt_text == fmt::format("{:>{}}", number - 1, (number - 1) % 50 + 3));
    --number;
  }
}
TEST_CASE("dataset: of more rows than max_samples the first are left, or some that the seed draws, in order") {
  io_test::temporary_folder const here;
  std::vector<path> files;
  for (int f = 0; f < 2; ++f) {
    std::string text;
    for (int i = 0; i < 50; ++i) text += fmt::format("{{\"prompt_ids\":[{}]}}\n", 50 * f + i);
    files.push_back(here / fmt::format("{}.jsonl", f));
    write_file(files.back(), text);
  }
  auto const ids = [&](std::int64_t most, bool at_random, std::uint64_t seed) {
    dataset_options o;
    o.vocab = 100, o.max_samples = most, o.choose_at_random = at_random, o.seed = seed;
    dataset const d(files, o, nullptr);
    CHECK(d.size() == (most < 0 || most > 100 ? 100u : std::size_t(most)));
    CHECK(d.counted().not_chosen == 100 - d.size());
    CHECK((d.first_of(0) == 0 && d.first_of(1) == d.rows_of(0) && d.rows_of(0) + d.rows_of(1) == d.size()));
    std::vector<i32> all;
    for (std::size_t i = 0; i < d.size(); ++i) {
      all.push_back(d.row(i).prompt[0]);
      CHECK((all.back() < 50) == (i < d.rows_of(0)));
    }
    CHECK(std::is_sorted(all.begin(), all.end()));
    return all;
  };
  std::vector<i32> first(60);
  std::iota(first.begin(), first.end(), 0);
  CHECK(ids(60, false, 1) == first);
  CHECK(ids(-1, true, 1).size() == 100);
  CHECK(ids(1000, true, 1).size() == 100);
  CHECK(ids(30, true, 1) == ids(30, true, 1));
  CHECK(ids(30, true, 1) != ids(30, true, 2));
  CHECK(ids(30, true, 1) != std::vector<i32>(first.begin(), first.begin() + 30));
}

TEST_CASE("dataset: a file that changes after it was checked is refused") {
  lab l;
  auto const d = l.read("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n");
  CHECK(d.row(1).prompt_text == "b");
  descriptor const fd(::open(l.file.c_str(), O_WRONLY | O_APPEND));
  write_all(fd, l.file, "\n", 1);
  CHECK_REFUSED(d.row(1), "data.jsonl has changed since the run began");
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep memory of their own
TEST_CASE("dataset: of 64 MB of rows a sixtieth is held") {
  lab l;
  l.options.max_prompt_length = 2000;
  {
    descriptor const fd(::open(l.file.c_str(), O_WRONLY | O_CREAT, 0644));
    std::string block;
    for (int i = 0; i < 1000; ++i) block += "{\"prompt\":\"" + std::string(1000, 'x') + "\"}\n";
    for (int i = 0; i < 64; ++i) write_all(fd, l.file, block.data(), block.size());
  }
  auto resident = [] {  // most so far, KiB
    std::string const status = read_file("/proc/self/status", 1 << 20);
    return std::strtol(status.c_str() + status.find("VmHWM:") + 6, nullptr, 10);
  };
  int const status = io_test::in_child([&] {
    long const before = resident();
    dataset const d({&l.file, 1}, l.options, &l.plain);
    if (d.size() != 64000 || d.row(63999).prompt.size() != 1000) refuse("rows are missing");
    if (long const more = resident() - before; more > 5000) refuse("{} KiB are held", more);
  });
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
#endif

TEST_CASE("dataset: the shuffle is a permutation for every size, a function of seed and epoch, and even") {
  for (std::uint64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 100, 1000, 4097}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < rows; ++i) seen.insert(shuffled(i, rows, 3, 7));
    CHECK(seen.size() == rows);
    CHECK(*seen.rbegin() == rows - 1);
  }
  auto order = [](std::uint64_t epoch, std::uint64_t seed) {
    std::vector<std::uint64_t> rows;
    for (std::uint64_t i = 0; i < 50; ++i) rows.push_back(shuffled(i, 50, epoch, seed));
    return rows;
  };
  CHECK(order(0, 1) == order(0, 1));
  CHECK(order(0, 1) != order(1, 1));
  CHECK(order(0, 1) != order(0, 2));
  // over many epochs each row comes to each position equally often
  std::vector<double> count(100);
  for (std::uint64_t epoch = 0; epoch < 10'000; ++epoch)
    for (std::uint64_t position = 0; position < 10; ++position) ++count[position * 10 + shuffled(position, 10, epoch, 1)];
  double chi = 0;
  for (double c : count) chi += (c - 1000) * (c - 1000) / 1000;
  CHECK(chi < 81 + 5 * 12.7);  // 81 degrees of freedom, five standard deviations
}
