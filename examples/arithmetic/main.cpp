// Writes arithmetic questions as rows of verl's form: DIR/train.jsonl, DIR/val.jsonl (held out), DIR/sft.jsonl (with the pupil's responses),
// DIR/right.jsonl (with right ones), DIR/pairs.jsonl (the right answer chosen over a carry that is forgotten, or one
// that is none).
#include <arithmetic/questions.hpp>
#include <program/program.hpp>

#include <weft/io/file.hpp>
#include <weft/io/json_string.hpp>

int main(int argc, char** argv) {
  arithmetic::settings s;
  std::string out;
  return program::main(
      argc, argv,
      {"arithmetic", "writes train.jsonl, val.jsonl (held out), sft.jsonl (a careless pupil's responses), right.jsonl and pairs.jsonl"},
      {{"--out", &out, "folder to write to", true},
       {"--seed", &s.seed, "of the split and of the slips"},
       {"--train", &s.train, "training questions; 0: all that are left"},
       {"--val", &s.val, "held-out questions"},
       {"--kind", &s.kinds, "add, sub, mul"},
       {"--least", &s.least, "smallest operand"},
       {"--most", &s.most, "largest operand"},
       {"--form", &s.form, "the prompt"},
       {"--repeats", &s.repeats, "rows of sft.jsonl for each training question"},
       {"--slip", &s.slip, "share of responses in sft.jsonl that forget the carry"}},
      [&] {
        auto const split = arithmetic::make(s);
        auto const row = [&](std::string& text, arithmetic::question const& q, char const* name, std::size_t index,
                             std::string const* response) {
          text += "{\"data_source\": \"arithmetic\", \"prompt\": ";
          weft::io::append_json_string(text, q.text(s.form));
          if (response) text += ", \"response\": \"" + *response + "\"";
          text += fmt::format(", \"ability\": \"math\", \"reward_model\": {{\"style\": \"rule\", \"ground_truth\": \"{}\"}}, "
                              "\"extra_info\": {{\"split\": \"{}\", \"index\": {}}}}}\n",
                              q.answer(), name, index);
        };
        std::string train, val, sft;
        for (std::size_t i = 0; i < split.train.size(); ++i) row(train, split.train[i], "train", i, nullptr);
        for (std::size_t i = 0; i < split.val.size(); ++i) row(val, split.val[i], "val", i, nullptr);
        arithmetic::stream next(static_cast<std::uint64_t>(s.seed) + 1);
        for (std::int64_t turn = 0; turn < s.repeats; ++turn)
          for (std::size_t i = 0; i < split.train.size(); ++i) {
            auto const& q = split.train[i];
            std::string const response = next.uniform() < s.slip ? q.slip() : fmt::format("{}", q.answer());
            row(sft, q, "train", i, &response);
          }
        std::string right, pairs;
        for (std::size_t i = 0; i < split.train.size(); ++i) {
          auto const& q = split.train[i];
          std::string const answer = fmt::format("{}", q.answer());
          row(right, q, "train", i, &answer);
          std::string const slip = q.slip(), wrong = slip == answer ? fmt::format("{}", q.answer() + 10) : slip;  // a carry that is none
          pairs += "{\"prompt\": ";
          weft::io::append_json_string(pairs, q.text(s.form));
          pairs += fmt::format(", \"chosen\": \"{}\", \"rejected\": \"{}\"}}\n", answer, wrong);
        }
        weft::io::path const folder = out;
        weft::io::make_folder(folder);
        weft::io::write_file(folder / "train.jsonl", train);
        weft::io::write_file(folder / "val.jsonl", val);
        weft::io::write_file(folder / "right.jsonl", right);
        weft::io::write_file(folder / "pairs.jsonl", pairs);
        if (s.repeats > 0) weft::io::write_file(folder / "sft.jsonl", sft);
        fmt::print("{}: {} training questions, {} held out, {} demonstrations\n", out, split.train.size(), split.val.size(),
                   split.train.size() * static_cast<std::size_t>(s.repeats));
        return 0;
      });
}
