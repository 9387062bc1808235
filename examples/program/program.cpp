#include <program/program.hpp>
#include <program/yaml.hpp>

#include <weft/name.hpp>
#include <weft/train/knobs.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>

namespace program {
namespace {

// Runs f; what it throws becomes one line and an exit code.
int guarded(std::string const& name, std::function<int()> const& f) {
  auto const fail = [&](char const* what, int code) { return fmt::print(stderr, "{}: {}\n", name, what), code; };
  try {
    return f();
  } catch (weft::io::input_error const& e) { return fail(e.what(), 2); } catch (weft::refusal const& e) {
    return fail(e.what, 2);
  } catch (std::bad_alloc const&) { return fail("out of memory", 1); } catch (std::exception const& e) {
    return fail(e.what(), 1);
  }
}

// false: --help was asked for and has been printed
bool parse(CLI::App& app, int argc, char** argv, std::string const& more_help) {
  bool help = false, version = false;
  app.set_help_flag();
  app.add_flag("--help,-h", help, "print this");
  app.add_flag("--version", version, "print versions");  // answered before main, by version.cpp
  for (auto* o : app.get_options()) o->capture_default_str();
  for (int i = 1; i < argc; ++i)  // asked for, it wins over whatever else is wrong or missing
    help |= argv[i] == std::string_view("--help") || argv[i] == std::string_view("-h");
  if (help) fmt::print("{}{}", app.help(), more_help);
  if (help) return false;
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) { weft::io::refuse("{} (--help lists what there is)", e.what()); }
  return true;
}

}  // namespace

int main(int argc, char** argv, about const& info, std::vector<flag> const& flags, std::function<int()> const& body) {
  return guarded(info.name, [&] {
    CLI::App app(info.does, info.name);
    for (flag const& f : flags)
      std::visit(
          [&](auto* to) {
            CLI::Option* option;
            if constexpr (std::is_same_v<decltype(to), bool*>) option = app.add_flag(f.name, *to, f.help);
            else option = app.add_option(f.name, *to, f.help);
            if constexpr (std::is_same_v<decltype(to), std::vector<std::string>*>)
              if (f.name.starts_with('-')) option->delimiter(',')->allow_extra_args(false);
            option->required(f.required);
          },
          f.to);
    return parse(app, argc, argv, "") ? body() : 0;
  });
}

int main(int argc, char** argv, about const& info, std::function<int(request const&)> const& body) {
  return guarded(info.name, [&] {
    request asked;
    weft::train::knobs knobs(asked.options);

    CLI::App app(info.does, info.name);
    std::vector<std::string> configurations, pairs, data, val;
    std::vector<std::pair<std::string_view, std::string>> singles{{"actor_rollout_ref.model.path", ""},
                                                                  {"trainer.default_local_dir", ""},
                                                                  {"trainer.total_training_steps", ""},
                                                                  {"seed", ""},
                                                                  {"device_memory", ""},
                                                                  {"device", ""}};
    bool dry_run = false, explain = false;
    app.add_option("--model", singles[0].second, "Hugging Face folder to start from")
        ->take_last();  // twice given, the last wins, as for key=value
    app.add_option("--data", data, "training rows: JSONL files")->allow_extra_args(false);
    app.add_option("--val", val, "held-out rows: JSONL files")->allow_extra_args(false);
    app.add_option("--out", singles[1].second, "folder of the run; a run found there goes on")->take_last();
    app.add_option("--steps", singles[2].second, "training steps")->take_last();
    app.add_option("--seed", singles[3].second, "of everything random")->take_last();
    app.add_option("--config", configurations, "YAML file that nests the same names")->allow_extra_args(false);
    app.add_option("--device", singles[5].second, "cpu, or cuda: the first GPU")->take_last();
    app.add_flag("--dry-run", dry_run, "print configuration, plan and memory, then stop");
    app.add_flag("--explain", explain, "the same, and what each knob costs in bytes and predicted time");
    app.add_option("--device-memory", singles[4].second, "bytes that the plan may take, such as 141G")->take_last();
    app.add_option("key=value", pairs, "any knob, by its name or an unambiguous suffix");
    if (!parse(app, argc, argv, "\nKnobs, with defaults (<name>: follows that knob):\n" + knobs.help())) return 0;

    for (auto const& file : configurations)
      for (entry const& e : read_yaml(file)) {
        try {
          knobs.set(e.key, e.value, e.where);
        } catch (weft::io::input_error const& error) { weft::io::refuse("{}: {}", e.where, error.what()); }
      }
    auto const list = [&](std::string_view key, std::vector<std::string> const& files) {
      std::string all;
      for (auto const& file : files) all += (all.empty() ? "" : ",") + file;
      if (!all.empty()) knobs.set(key, all, "command line");
    };
    list("data.train_files", data), list("data.val_files", val);
    for (auto const& [key, value] : singles)
      if (!value.empty()) knobs.set(key, value, "command line");
    if (dry_run) knobs.set("dry_run", "true", "command line");
    if (explain) knobs.set("explain", "true", "command line");
    for (auto const& pair : pairs) knobs.assign(pair, "command line");
    if (!info.algorithm.empty() && knobs["algorithm.name"].origin.empty()) knobs.set("algorithm.name", info.algorithm, info.name);
    knobs.resolve();
    if (!info.algorithm.empty() && asked.options.algorithm.name != info.algorithm)
      weft::io::refuse("algorithm.name={}: this program runs {}; `train` runs any", asked.options.algorithm.name, info.algorithm);

    bool const picture = asked.options.dry_run && asked.options.plan != "text";  // which goes into a file
    for (auto const& line : knobs.overrides())
      if (!picture) fmt::print("{}\n", line);
    for (auto const& line : knobs.notes())
      if (!picture) fmt::print("{}\n", line);
    std::fflush(stdout);  // before the run's own lines on stderr, also in a file
    asked.configuration = knobs.yaml();
    return body(asked);
  });
}

}  // namespace program
