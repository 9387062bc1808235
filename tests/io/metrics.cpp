// metrics.cpp — parts add up to the mean of the whole, lines are JSON, and a resumed run has every step once.
#include <weft/io/metrics.hpp>

#include <weft/io/json.hpp>
#include <weft/io/progress.hpp>

#include "allocation.hpp"
#include "helper.hpp"

using namespace weft::io;

TEST_CASE("metrics: however the samples are split, the reduced value is that of the whole") {
  std::vector<double> const values{3, -1, 4, 1, -5, 9, 2};
  for (std::size_t cut = 0; cut <= values.size(); ++cut) {
    metrics whole, part[2];
    for (std::size_t i = 0; i < values.size(); ++i)
      for (metrics* m : {&whole, &part[i < cut ? 0 : 1]}) {
        m->add("mean", values[i] * 2, 2, reduction::mean);
        m->add("sum", values[i], 1, reduction::sum);
        m->add("max", values[i], 1, reduction::max);
        m->add("min", values[i], 1, reduction::min);
      }
    metrics both;
    both.merge(part[0].all()), both.merge(part[1].all());
    CHECK(both.find("mean")->value() == doctest::Approx(13.0 / 7));
    CHECK(both.find("sum")->value() == 13);
    CHECK(both.find("max")->value() == 9);
    CHECK(both.find("min")->value() == -5);
    for (metric const& m : whole.all()) CHECK(both.find(m.name)->value() == m.value());
  }
}

TEST_CASE("metrics: nothing counted is left out, zero counted is zero, two reductions are refused") {
  metrics m;
  m.add("empty", 0, 0, reduction::mean);
  m.add("zero", 0, 4, reduction::mean);
  CHECK(!m.find("empty"));
  CHECK(m.find("zero")->value() == 0);
  CHECK_REFUSED(m.add("zero", 1, 1, reduction::max), "metric zero is emitted with two reductions");
  m.clear();
  CHECK(!m.find("zero"));
}

TEST_CASE("metrics: lines are JSON under the names given, and a resumed run cuts the steps it repeats") {
  io_test::temporary_folder folder;
  path const file = folder / "metrics.jsonl";
  auto write = [&](std::int64_t first, std::int64_t last) {
    metrics_file out(file, first);
    metrics m;
    for (std::int64_t step = first; step <= last; ++step) {
      m.clear();
      m.add("actor/pg_loss", static_cast<double>(step), 3, reduction::mean);
      m.add("val-core/a\"b/mean@1", NAN, 1, reduction::mean);
      out.write(step, m);
    }
  };
  auto steps = [&] {
    std::vector<std::int64_t> found;
    std::string const text = io_test::read(file);
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
      json const line = parse_json(text.substr(at, end - at), "metrics");
      found.push_back(integer_of(line, "step", 0, 100, "metrics"));
      CHECK(line.find("actor/pg_loss")->to_double() == doctest::Approx(static_cast<double>(found.back()) / 3));
      CHECK(line.find("val-core/a\"b/mean@1")->is_null());
    }
    return found;
  };
  write(1, 5);
  CHECK(steps() == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  write(4, 6);
  CHECK(steps() == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);  // torn by a crash
  write(6, 7);
  CHECK(steps() == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7});
  write(1, 1);
  CHECK(steps() == std::vector<std::int64_t>{1});
}

TEST_CASE("metrics: after the first step nothing is allocated") {
  io_test::temporary_folder folder;
  metrics_file out(folder / "m", 0);
  metrics m;
  std::string console;
  auto step = [&](std::int64_t n) {
    m.clear();
    m.add("critic/score/mean", 1.23456789, 3, reduction::mean);
    m.add("timing_s/gen", 0.123456789, 1, reduction::sum);
    out.write(n, m);
    console_line(console, n, m);
  };
  step(1), step(2);
  allocation::start();
  step(3);
  CHECK(allocation::count() == 0);
  CHECK(console == "step:3 - critic/score/mean:0.411523 - timing_s/gen:0.123457");
}

TEST_CASE("progress: plain lines where no terminal is, at most one in the stated time") {
  io_test::temporary_folder folder;
  std::FILE* file = std::fopen((folder / "log").c_str(), "w");
  {
    progress line(file, 3600);
    for (std::int64_t step = 1; step < 100; ++step) line.show({"gen", step, 100, 3, 8, 1234.4, 0.5, 3725, "straggler", "rollout.max_num_seqs"});
    line.say("a line that stays");
  }
  std::fclose(file);
  CHECK(io_test::read(folder / "log") == "step 1/100 gen 3/8 | 1234 tokens/s | reward 0.500 | ETA 1:02:05 | straggler: rollout.max_num_seqs\na line that stays\n");
}
