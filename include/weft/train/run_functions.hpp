// run_functions.hpp — the functions of run.hpp: inline, or compiled once where WEFT_COMPILED is defined.
#pragma once
#include <weft/io/report.hpp>
#include <weft/train/run.hpp>
#include <weft/version.hpp>

#include <unistd.h>

#include <cstring>
#include <ctime>

#ifdef WEFT_COMPILED
#define WEFT_FUNCTION
#else
#define WEFT_FUNCTION inline
#endif

namespace weft::train {
// ---- what a run was made from ------------------------------------------------------------------------------
WEFT_FUNCTION std::string now_as_text() {
  std::time_t const t = std::time(nullptr);
  std::tm parts;
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&t, &parts));
  return text;
}
WEFT_FUNCTION std::string machine_name(size_t threads) {  // the processor's, as the kernel tells it
  std::string name = "unknown processor";
  if (std::FILE* const file = std::fopen("/proc/cpuinfo", "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, file))
      if (char const* const colon = std::strchr(line, ':'); colon && std::strncmp(line, "model name", 10) == 0) {
        name = colon + 2;
        while (!name.empty() && name.back() <= ' ') name.pop_back();
        break;
      }
    std::fclose(file);
  }
  return fmt::format("{}, {} threads", name, threads);
}
WEFT_FUNCTION double resident_bytes() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return double(pages) * double(::sysconf(_SC_PAGE_SIZE));
}
WEFT_FUNCTION std::string hash_of_file(io::path const& file) {
  io::descriptor const fd = io::open_read(file);
  u64 const all = io::size_of(fd, file), bytes = std::min(all, u64{1} << 28);  // a start does not wait for more
  std::string block(size_t(std::min<u64>(bytes, 1 << 22)), '\0');
  u32 sum = 0;
  for (u64 at = 0; at < bytes;) {
    size_t const n = size_t(std::min<u64>(block.size(), bytes - at));
    io::read_at(fd, file, at, block.data(), n);
    sum = io::crc32c(block.data(), n, sum), at += n;
  }
  return fmt::format("crc32c {:08x}{}, {} bytes", sum, bytes < all ? " of the first 256 MiB" : "", all);
}

WEFT_FUNCTION void run_folder::finish() {
  io::write_file(out_ / "graph.json", graph_json(graph_, seconds_, steps_).dump());
  if (!trace_.empty()) io::write_file(out_ / "trace.json", trace_.text());
  io::path const folders[] = {out_};
  io::write_file(out_ / "report.html", io::report_html(folders));
}

// ---- before the first step --------------------------------------------------------------------------------
WEFT_FUNCTION run::run(options o, needs n, reward_function reward)
    : options_(std::move(o))
    , needs_(n)
    , sizes_(sizes_of(options_))
    , actor_(options_.actor.path, n.labels, n.supervised && !n.pairs)
    , pool_(size_t(options_.threads)) {
  if (n.critic) critic_.emplace(options_.critic.path.empty() ? options_.actor.path : options_.critic.path, 1, false);
  if (n.reference) reference_.emplace(options_.ref.path.empty() ? options_.actor.path : options_.ref.path, 0, false);
  if (n.teacher) {
    if (options_.teacher.path.empty()) io::refuse("no teacher: give its Hugging Face folder as teacher.model.path");
    teacher_.emplace(options_.teacher.path, 0, false);
    i32 const theirs = teacher_->config().vocab, ours = actor_.config().vocab;
    if (theirs != ours) io::refuse("teacher.model.path: its vocabulary has {} ids, the policy's {}; they must be the same", theirs, ours);
  }
  if (std::filesystem::exists(actor_.folder() / "tokenizer.json")) words_ = io::read_tokenizer(actor_.folder());
  read_data();
  if (!reward) reward = reward_named(options_.reward);
  train_rows_.emplace(train_), validation_rows_.emplace(validation_);
  train_reward_.emplace(*train_rows_, words_.get(), reward, overlong_of(options_), &filter_);
  validation_reward_.emplace(*validation_rows_, words_.get(), reward);
  order_rows();
  auto const& t = options_.trainer;
  steps_ = t.total_training_steps > 0 ? t.total_training_steps : t.total_epochs * i64(order_.steps_of_epoch());
  stop_ids_ = io::read_eos_ids(actor_.folder(), actor_.found());
  if (stop_ids_.empty() && words_) stop_ids_ = words_->eos_ids();
  kl_coefficient_ = options_.algorithm.kl_ctrl.kl_coef;
  for (std::string const& step : t.profile_steps) {
    i64 number = 0;
    auto const [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
    if (error != std::errc{} || end != step.data() + step.size() || number < 1)
      io::refuse("trainer.profile_steps={}: expected numbers of steps, from 1 on", io::show(step));
    profiled_.push_back(number);
  }
}

WEFT_FUNCTION void run::read_data() {
  io::dataset_options d;
  d.prompt_key = options_.data.prompt_key;
  d.reward_fn_key = options_.data.reward_fn_key;
  d.ground_truth_key = options_.data.ground_truth_key;
  d.vocab = actor_.config().vocab;
  d.max_prompt_length = i32(options_.data.max_prompt_length);
  d.max_response_length = i32(options_.data.max_response_length);
  d.filter_overlong_prompts = options_.data.filter_overlong_prompts;
  d.truncate = options_.data.truncation == "left"     ? io::truncation::left
               : options_.data.truncation == "right"  ? io::truncation::right
               : options_.data.truncation == "middle" ? io::truncation::middle
                                                      : io::truncation::error;
  d.chat.enable_thinking = options_.data.chat.enable_thinking;
  d.chat.date_string = options_.data.chat.date_string;
  d.choose_at_random = options_.data.shuffle;
  d.seed = u64(options_.data.seed < 0 ? options_.seed : options_.data.seed);
  auto const read = [&](std::vector<std::string> const& files, bool with_response, char const* name, i64 most) {
    if (most == 0) io::refuse("{}=0: no row would be left; -1 means all", name);
    d.max_samples = most;
    d.kind = !with_response ? io::row_kind::prompt : needs_.pairs ? io::row_kind::pair : io::row_kind::supervised;
    d.response_key = with_response ? options_.data.response_key : "";
    return io::dataset(std::vector<io::path>(files.begin(), files.end()), d, words_.get());
  };
  if (options_.data.train_files.empty()) io::refuse("no training data: give a JSONL file with --data");
  train_ = read(options_.data.train_files, needs_.supervised, "data.train_max_samples", options_.data.train_max_samples);
  if (needs_.tasks) {
    auto const add = [&](std::vector<std::string> const& files, char const* name, io::row_kind kind, i64 batch) {
      if (files.empty()) io::refuse("{}: no files; hybrid learns from demonstrations and pairs too", name);
      d.max_samples = -1, d.kind = kind, d.response_key = kind == io::row_kind::supervised ? options_.data.response_key : "";
      tasks_.push_back(std::make_unique<task_source>(io::dataset(std::vector<io::path>(files.begin(), files.end()), d, words_.get()), name,
                                                     u64(batch), u64(options_.seed), options_.data.shuffle));
    };
    add(options_.hybrid.sft_files, "hybrid.sft_files", io::row_kind::supervised, options_.hybrid.sft_batch_size);
    add(options_.hybrid.dpo_files, "hybrid.dpo_files", io::row_kind::pair, options_.hybrid.dpo_batch_size);
  }
  if (needs_.labels && !options_.data.val_files.empty())
    io::refuse("data.val_files: a reward model answers no prompts; watch rewards/accuracies, which is taken before a pair is learned");
  if (!options_.data.val_files.empty())
    validation_ = read(options_.data.val_files, false, "data.val_max_samples", options_.data.val_max_samples);
}

WEFT_FUNCTION void run::order_rows() {
  auto const& d = options_.data;
  order_ = {train_.size(), u64(sizes_.rollouts), u64(d.seed < 0 ? options_.seed : d.seed), d.shuffle};
  if (order_.rows > INT32_MAX) io::refuse("the training data has {} rows, more than {}", order_.rows, INT32_MAX);
  if (order_.rows < order_.batch)
    io::refuse("the training data has {} rows, fewer than data.train_batch_size={}; lower it", order_.rows, order_.batch);
  if (!d.train_weights.empty() && d.train_weights.size() != train_.files())
    io::refuse("data.train_weights has {} weights for {} files of data.train_files", d.train_weights.size(), train_.files());
  for (size_t f = 0; f < d.train_weights.size(); ++f) {
    char* end = nullptr;
    double const weight = std::strtod(d.train_weights[f].c_str(), &end);
    if (*end != 0 || !(weight > 0 && weight < 1e9)) io::refuse("data.train_weights: {} is no number above 0", io::show(d.train_weights[f]));
    if (train_.rows_of(f) == 0) io::refuse("{}: no row is left of this file, and data.train_weights gives it a share", d.train_files[f]);
    order_.sources.push_back({train_.first_of(f), train_.rows_of(f), weight});
  }
}

// A plan that does not fit is refused with its largest parts before anything is taken.
WEFT_FUNCTION void run::check_memory(size_t bytes, std::vector<buffer_line> parts) const {
  if (options_.device != "cpu" && options_.device_memory <= 0) return;  // the device will say
  u64 const there = u64(::sysconf(_SC_PHYS_PAGES)) * u64(::sysconf(_SC_PAGE_SIZE)),
            limit = options_.device_memory > 0 ? u64(options_.device_memory) : there;
  if (bytes <= limit) return;
  std::sort(parts.begin(), parts.end(), [](auto const& a, auto const& b) { return a.bytes > b.bytes; });
  std::string largest;
  for (size_t i = 0; i < 4 && i < parts.size(); ++i)
    largest += fmt::format("{}{} {}", i ? ", " : "", parts[i].port, shown_bytes(double(parts[i].bytes)));
  io::refuse(
      "the plan needs {} and {} are there: {}; lower train_batch_size, rollout.n, ppo_max_token_len_per_gpu, max_num_seqs or kv_pages",
      shown_bytes(double(bytes)), shown_bytes(double(limit)), largest);
}
WEFT_FUNCTION std::string run::left_out(io::dataset const& d) {
  auto const& n = d.counted();
  return (n.filtered ? fmt::format(" ({} of {} left out as too long)", n.filtered, n.read) : "") +
         (n.truncated ? fmt::format(" ({} cut to the limit)", n.truncated) : "") +
         (n.not_chosen ? fmt::format(" ({} more are not used: max_samples)", n.not_chosen) : "");
}
WEFT_FUNCTION std::string run::batch_arithmetic() const {
  auto const& z = sizes_;
  return fmt::format("batch\n  {} prompts x {} = {} samples a step, {} epochs of {} mini-batches, micro-batches of {} tokens\n", z.prompts,
                     z.group, z.prompts * z.group, needs_.supervised ? 1 : options_.actor.ppo_epochs, z.actor_minibatches,
                     options_.actor.ppo_max_token_len_per_gpu) +
         fmt::format("  {} rows of training data{}, {} steps an epoch, {} steps; {} rows of validation{}\n  {} threads\n", order_.rows,
                     left_out(train_), order_.steps_of_epoch(), steps_, validation_.size(), left_out(validation_), pool_.size());
}

// ---- the run's folder -----------------------------------------------------------------------------------------
WEFT_FUNCTION void run::record(char const* name, std::string text) { records_.emplace_back(name, std::move(text)); }
WEFT_FUNCTION void run::open() {
  io::make_folder(out());
  lock_.emplace(out());  // before anything else is written: the folder may be another job's
  if (options_.trainer.resume_mode == "disable" && !io::checkpoint_steps(out()).empty())
    io::refuse("{} has checkpoints, and trainer.resume_mode=disable would mix them with new ones; remove them or choose another folder",
               out().string());
  for (auto const& [name, text] : records_) io::write_file(out() / name, text);
  io::write_file(out() / "run.json", information());
  journal_.emplace(out() / "samples.journal");
  for (auto const& [name, data] : {std::pair("training", &train_), {"validation", &validation_}})
    if (std::string const fewer = left_out(*data); !fewer.empty())
      progress_.say(fmt::format("{} rows of {} data{}", data->size(), name, fewer));
}
// What a run must have in common with the one it goes on with.
WEFT_FUNCTION std::vector<std::pair<std::string, i64>> run::identity() const {
  return {{"seed", options_.seed},
          {"data.train_batch_size", sizes_.prompts},
          {"rollout.n", sizes_.group},
          {"rows of the training data", i64(train_.size())}};
}
WEFT_FUNCTION void run::save(std::span<io::blob const> blobs) {
  save_early(blobs);
  journal_->committed();
}
WEFT_FUNCTION void run::save_early(std::span<io::blob const> blobs) {
  journal_->sync();
  if (saved_ == done_ || done_ == 0) return;
  io::json::object same;
  for (auto const& [name, value] : identity()) same.emplace_back(name, value);
  io::json const all = io::json::object{{"identity", std::move(same)},
                                        {"first_accuracy", first_accuracy},
                                        {"kl_coefficient", kl_coefficient_},
                                        {"batches_drawn", drawn_by_done_},  // a step that was left early draws its prompts again
                                        {"skipped_in_a_row", guard_.in_a_row}};
  i64 const keep = options_.trainer.max_ckpt_to_keep;
  io::save_checkpoint(out(), done_, blobs, all, keep > 0 ? size_t(keep) : 0);
  saved_ = done_;
}
WEFT_FUNCTION void run::resume(std::span<io::place const> places) {
  auto const say = [&](std::string const& line) { progress_.say(line); };
  std::optional<io::loaded_checkpoint> found;
  if (options_.trainer.resume_mode == "resume_path") found = io::load_checkpoint_at(options_.trainer.resume_from_path, places);
  else if (options_.trainer.resume_mode == "auto") found = io::load_checkpoint(out(), places, say);
  if (found) {
    std::string const where = found->folder.string();
    for (auto const& [name, value] : identity()) {
      i64 const was = io::integer_of(found->state.at("identity", where), name, INT64_MIN, INT64_MAX, where);
      if (was != value) io::refuse("{}: {} was {}, this run has {}; use the same, or another --out", where, name, was, value);
    }
    done_ = found->step;
    drawn_ = drawn_by_done_ = i64(io::number_or(found->state, "batches_drawn", double(done_), 0, 9e15, where));
    first_accuracy = io::number_or(found->state, "first_accuracy", -1, -1, 1e9, where);
    kl_coefficient_ = io::number_or(found->state, "kl_coefficient", kl_coefficient_, -1e9, 1e9, where);
    guard_.in_a_row = i32(io::integer_of(found->state, "skipped_in_a_row", 0, 1 << 20, where));
    resumed_ = true;
    saved_ = options_.trainer.resume_mode == "auto" ? done_ : -1;
    progress_.say(fmt::format("resumed at step {} from {}; {} finished samples in the journal", done_, where, journal_->known()));
  }
  folder_.emplace(out(), done_ + (done_ > 0), profiled_);
}
// Seed, versions, machine, and a hash of everything that was read: what a run can be told apart by, and made again from.
WEFT_FUNCTION std::string run::information() const {
#ifdef __clang__
  char const* const compiler = __VERSION__;
#else
  char const* const compiler = "g++ " __VERSION__;
#endif
  io::json::object all{{"started", now_as_text()}, {"weft", WEFT_VERSION}, {"compiler", compiler}};
  for (auto const& [name, value] : facts_) all.emplace_back(name, value);
  all.emplace_back("machine", machine_name(pool_.size()));
  all.emplace_back("seed", options_.seed);
  all.emplace_back("steps", steps_);
  io::json::object hashes;
  for (auto const& files : {options_.data.train_files, options_.data.val_files})
    for (auto const& file : files) hashes.emplace_back(file, hash_of_file(file));
  all.emplace_back("data", std::move(hashes));
  auto const model = [&](char const* who, model_files const& m) {
    io::json::object of;
    for (auto const& entry : std::filesystem::directory_iterator(m.folder()))
      if (auto const kind = entry.path().extension(); entry.is_regular_file() && (kind == ".json" || kind == ".safetensors"))
        of.emplace_back(entry.path().string(), hash_of_file(entry.path()));
    std::sort(of.begin(), of.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    all.emplace_back(who, std::move(of));
  };
  model("actor", actor_);
  if (critic_ && critic_->folder() != actor_.folder()) model("critic", *critic_);
  if (reference_ && reference_->folder() != actor_.folder()) model("reference", *reference_);
  return io::json(std::move(all)).dump(1);
}

// ---- a step ---------------------------------------------------------------------------------------------------
WEFT_FUNCTION std::vector<u64> run::row_numbers(i64 step) const {
  std::vector<u64> rows;
  for (u64 i = 0; (filters() || step < steps_) && i < order_.batch; ++i) rows.push_back(order_.at(u64(step), i).row);
  return rows;
}
WEFT_FUNCTION void run::take_rows() {
  auto const rows = train_rows_->take(row_numbers(drawn_), row_numbers(drawn_ + 1));
  current_.clear();
  for (u64 i = 0; i < rows.size(); ++i) {
    auto const at = order_.at(u64(drawn_), i);
    current_.push_back({rows[i], at.row, u32(at.epoch * order_.rows + at.row)});
  }
  ++drawn_;
  for (auto& source : tasks_) source->take(u64(done_));
}
WEFT_FUNCTION i32 run::task_of(size_t i) const {
  return i < size_t(sizes_.rollouts) ? rl::rollouts : i < size_t(sizes_.rollouts) + tasks_[0]->batch() ? rl::demonstrations : rl::pairs;
}
WEFT_FUNCTION io::data_row const& run::task_row(size_t prompt) const {
  size_t const i = prompt - size_t(sizes_.rollouts), first = tasks_[0]->batch();
  return i < first ? tasks_[0]->row(i) : tasks_[1]->row(i - first);
}
WEFT_FUNCTION run::prompt_row run::row_of(size_t i) const {
  if (!tasks_.empty() && task_of(i) != rl::rollouts) return {task_row(i), -1, 0};
  auto const& p = current_[i];
  return {*p.row, i64(p.index), p.draw};
}
WEFT_FUNCTION bool run::collect(group_filter::columns const& c) {
  auto const& f = options_.algorithm.filter_groups;
  auto const penalty = f.metric == "acc" ? overlong_of(options_) : objective::overlong{0, 0, 0};
  size_t const wanted = size_t(sizes_.rollouts);
  filter_.add_round(current_, c, wanted, [&](size_t i) {  // in units of the score's last bits
    double const lost = penalty.buffer > 0 ? double(f32(objective::overlong_penalty(penalty, c.lengths[i]))) : 0;
    return std::round((double(c.scores[i].value) - lost) * 1e5);
  });
  if (filter_.kept() == wanted) return true;
  i64 const rounds = i64(filter_.rounds()), endless = std::max<i64>(100, 2 * i64(order_.steps_of_epoch()));
  if ((f.max_num_gen_batches > 0 && rounds >= f.max_num_gen_batches) || (filter_.kept() == 0 && rounds >= endless))
    throw std::runtime_error(
        fmt::format("{} batches gave {} groups whose scores differ, and a step needs {}: the data is too easy or too "
                    "hard; raise algorithm.filter_groups.max_num_gen_batches (0: no limit), or lower data.train_batch_size",
                    rounds, filter_.kept(), wanted));
  return false;
}
WEFT_FUNCTION void run::take_kept() {
  current_.clear();
  for (size_t i = 0; i < filter_.kept(); ++i) current_.push_back(filter_.prompt(i));
  filter_.replay();
}
WEFT_FUNCTION void run::begin_step(u32 source) {
  finished_ = 0;
  finite_ = scored_ = true;
  journal_->begin_step(done_, source);
  io::kill_point("step");
}
WEFT_FUNCTION void run::end_step() {
  io::kill_point("stepped");
  double const epoch = double(order_.epoch_of(u64(drawn_ - 1)));
  ++done_, drawn_by_done_ = drawn_;
  metrics_.clear();
  metrics_.add("training/global_step", double(done_), 1, io::reduction::mean);
  metrics_.add("training/epoch", epoch, 1, io::reduction::mean);
}
WEFT_FUNCTION void run::add(step_columns const& c) {
  auto const& s = c.samples;
  add_sample_metrics(metrics_, s);
  if (c.rollout_sums) add_rollout_metrics(metrics_, c.rollout_sums);
  auto const* const mean = metrics_.find("critic/score/mean");
  scored_ = mean != nullptr;
  reward_mean_ = mean ? mean->value() : 0;
  for (size_t i = 0; i < s.samples; ++i) {
    if (s.scores[i].what != rl::reward_result::scored) continue;
    for (size_t t = i * s.capacity; t < i * s.capacity + size_t(s.lengths[i]); ++t) {
      if (c.advantages) add_spread(metrics_, "critic/advantages", double(c.advantages[t]));
      if (c.returns) add_spread(metrics_, "critic/returns", double(c.returns[t]));
      if (c.values) add_spread(metrics_, "critic/values", double(c.values[t]));
    }
  }
  if (filters()) {
    metrics_.add("training/num_gen_batches", double(filter_.rounds()), 1, io::reduction::sum);
    metrics_.add("training/filtered_groups", double(filter_.dropped()), 1, io::reduction::sum);
    filter_.begin();
  }
  for (size_t p = 0; c.group_drops && p < s.samples / s.group; ++p)
    metrics_.add("training/dropped_groups", c.group_drops[p], 1, io::reduction::sum);
  if (c.kl_means && options_.algorithm.use_kl_in_reward) control_kl(c);
  if (c.tokens) show_samples(c);
}
WEFT_FUNCTION void run::show_samples(step_columns const& c) {
  auto const& s = c.samples;
  size_t const wanted = std::min(s.samples, size_t(options_.trainer.log_samples));
  std::string text;
  for (size_t k = 0; k < wanted; ++k) {
    size_t const prompt = k * s.samples / wanted / s.group, i = prompt * s.group + k % s.group;  // spread over prompts
    u64 const index = current_[prompt].index;
    row_feed::row const& row = current_[prompt].row;
    auto const finish = rollout::finish(s.finishes[i]);
    text.clear();
    for (i32 t = 0; t < s.lengths[i]; ++t) {
      i32 const id = c.tokens[i * s.capacity + size_t(t)];
      if (!words_) text += fmt::format("{}{}", t ? " " : "", id);
      else if (!words_->is_special(id)) text += words_->bytes_of(id);
    }
    folder_->add(done_, {i64(index), i64(i % s.group), s.lengths[i], row->prompt_text, text, row->ground_truth,
                         finish == rollout::finish::length    ? "cut at max_response_length"
                         : finish == rollout::finish::aborted ? "aborted"
                                                              : "ended by itself",
                         s.scores[i].what == rl::reward_result::scored ? double(s.scores[i].value) : NAN});
  }
}
WEFT_FUNCTION void run::control_kl(step_columns const& c) {
  auto const& k = options_.algorithm.kl_ctrl;
  double sum = 0, count = 0;
  for (size_t s = 0; s < c.samples.samples; ++s)
    if (c.samples.scores[s].what == rl::reward_result::scored) sum += c.kl_means[s], ++count;
  if (count == 0) return;
  metrics_.add("actor/reward_kl_penalty", sum, count, io::reduction::mean);
  metrics_.add("actor/reward_kl_penalty_coeff", kl_coefficient_, 1, io::reduction::mean);
  kl_coefficient_ = objective::next_kl_coefficient({k.type == "adaptive", k.kl_coef, k.target_kl, double(k.horizon)}, kl_coefficient_,
                                                   sum / count, count);
}
WEFT_FUNCTION void run::add_task(double const* sums, metric_names const& names, size_t updates) {
  add_loss_metrics(metrics_, names, sums, updates);
}
WEFT_FUNCTION void run::add(update_columns const& c) {
  add_update_metrics(metrics_, c.who, c.names, c.sums, c.norms, c.updates, c.lr);
  i64 skipped = 0;
  for (size_t i = 0; i < c.updates; ++i) skipped += !(c.norms[i] - c.norms[i] == 0);
  finite_ = finite_ && skipped == 0 && (c.updates == 0 || c.sums[0] - c.sums[0] == 0);
  metrics_.add("training/skipped_updates", double(skipped), 1, io::reduction::sum);
}
WEFT_FUNCTION void run::watch(weft::detail::program const& p, std::vector<device_map> const& maps) {
  // verl's names of a step's parts, by what a node of the plan is called
  struct sign {
    std::string_view in_name;
    char const* part;
  };
  static constexpr sign signs[] = {{"generate<", "gen"},
                                   {"reward<", "reward"},
                                   {"<reference", "ref"},
                                   {"state_values", "values"},
                                   {"old_log_probs", "old_log_prob"},
                                   {"<critic", "update_critic"},
                                   {"<actor", "update_actor"},
                                   {"", "adv"}};
  parts_.assign(p.n, "");
  seconds_.assign(p.n, 0);
  on_host_.assign(p.n, false);
  for (size_t n = 1; n < p.n; ++n) {
    std::string const name = weft::detail::node_name(p, n);
    on_host_[n] = p.nodes[n].host;
    for (sign const& s : signs)
      if (name.find(s.in_name) != std::string::npos) {
        parts_[n] = p.nodes[n].what != move::none ? "move" : s.part;
        break;
      }
  }
  host_syncs_ = 1;  // the end of the step
  for (size_t k = 0; k < p.segment_count; ++k) host_syncs_ += p.segments[k].host;
  double arena = 0, alive = 0;
  for (device_map const& m : maps) {
    arena += double(m.arena * m.count), alive += double(m.least * m.count);
    planned_bytes_ += double((m.arena + m.state) * m.count);
  }
  arena_fill_ = arena > 0 ? alive / arena : 0;
  folder_->draw(stage_graph_of(p), p.n);
}
WEFT_FUNCTION void run::stage_ended(void* context, size_t node, double start, double end) {
  auto& me = *static_cast<run*>(context);
  me.folder_->stage(me.done_ + 1, node, start, end);
  if (std::string_view(me.parts_[node]) != "move") me.show(me.parts_[node]);
}
WEFT_FUNCTION void run::add_times(double start, double end) {
  double all = 0, device = 0;
  times_ = {.graph = end - start};
  for (size_t n = 0; n < seconds_.size(); ++n) {
    double const seconds = std::exchange(seconds_[n], 0.0);
    if (seconds == 0) continue;
    folder_->took(n, seconds);
    std::string_view const part = parts_[n];
    metrics_.add(fmt::format("timing_s/{}", part), seconds, 1, io::reduction::sum);
    all += seconds;
    if (part == "gen") times_.generation += seconds;
    if (part == "reward") times_.reward += seconds;
    if (part == "move") times_.moves += seconds;
    if (part != "move" && !on_host_[n]) device += seconds;
  }
  metrics_.add("timing_s/wait_data", train_rows_->waited(), 1, io::reduction::sum);
  metrics_.add("timing_s/engine", times_.graph - all, 1, io::reduction::sum);  // the graph's own: what is in no stage
  times_.device = device;
  folder_->stepped(done_, start, end);
}
WEFT_FUNCTION void run::finish_metrics(double seconds) {
  seconds_of_step_ = seconds;
  auto const* const tokens = metrics_.find("perf/total_num_tokens");
  tokens_per_second_ = tokens ? tokens->value() / seconds : 0;
  metrics_.add("perf/time_per_step", seconds, 1, io::reduction::mean);
  metrics_.add("timing_s/step", seconds, 1, io::reduction::mean);
  metrics_.add("perf/throughput", tokens_per_second_, 1, io::reduction::mean);
  guard_.admit(finite_ && (scored_ || !needs_.scored) ? 0 : NAN, 0);
  times_.step = seconds;
  times_.recomputes = options_.actor.enable_gradient_checkpointing;
  auto const slots = double(std::min(options_.rollout.max_num_seqs, sizes_.prompts * sizes_.group));
  auto const value = [&](char const* name) {
    auto const* const m = metrics_.find(name);
    return m ? m->value() : 0;
  };
  times_.busy_slots = times_.generation > 0 ? value("rollout/busy_slots") / slots : 1;
  times_.replayed = value("rollout/replayed_tokens") / std::max(1.0, value("rollout/replayed_tokens") + value("rollout/decoded_tokens"));
  bottleneck const b = bottleneck_of(times_);
  for (waiting const& w : b.all) metrics_.add(fmt::format("perf/share/{}", w.name), w.share, 1, io::reduction::mean);
  metrics_.add("perf/device_busy", times_.device, seconds, io::reduction::mean);
  metrics_.add("perf/arena_fill", arena_fill_, 1, io::reduction::mean);
  metrics_.add("perf/host_syncs", host_syncs_, 1, io::reduction::mean);
  metrics_.add("perf/max_memory_reserved_gb", planned_bytes_ / 1e9, 1, io::reduction::max);
  metrics_.add("perf/cpu_memory_used_gb", resident_bytes() / 1e9, 1, io::reduction::max);
  waits_for_ = b.named().name, knob_ = b.named().knob;
  metrics_.note("perf/bottleneck", waits_for_), metrics_.note("perf/knob", knob_);
  show("step");
}
WEFT_FUNCTION void run::stop_if_stuck() const {
  if (!guard_.must_stop()) return;
  if (scored_ || !needs_.scored)
    throw std::runtime_error(
        fmt::format("the loss or gradient was not finite in {} steps in a row; stopped at step {}", guard_.in_a_row, done_));
  auto const* const aborted = metrics_.find("response/aborted_ratio");
  throw std::runtime_error(fmt::format(
      "no sample had a score in {} steps in a row: {}; stopped at step {}", guard_.in_a_row,
      aborted && aborted->value() > 0 ? "the model's logits are not finite" : "every reward is missing, failed or not finite", done_));
}

// ---- samples as they finish -----------------------------------------------------------------------------------
WEFT_FUNCTION bool run::known(void* context, rollout::sample_view<f32> const& s) {
  auto& me = *static_cast<run*>(context);
  if (i32 const task = me.tasks_.empty() ? i32(rl::rollouts) : me.task_of(size_t(s.prompt)); task != rl::rollouts) {  // came with the data
    auto const& row = me.task_row(size_t(s.prompt));
    auto const* const ids = s.index == 0 ? &row.response : s.index == 1 && task == rl::pairs ? &row.rejected : nullptr;
    for (size_t t = 0; ids && t < ids->size(); ++t) s.ids[t] = (*ids)[t], s.log_probs[t] = s.log_kept[t] = s.entropies[t] = 0;
    *s.length = ids ? i32(ids->size()) : 0;
    *s.reason = ids ? rollout::finish::length : rollout::finish::aborted;
    me.count_finished();
    return true;
  }
  if (me.filter_.known(s)) return me.count_finished(), true;
  bool const found = me.journal_->take(s);
  if (found) me.count_finished();
  return found;
}
WEFT_FUNCTION void run::finished(void* context, rollout::sample_view<f32> const& s) {
  auto& me = *static_cast<run*>(context);
  me.journal_->put(s);
  io::kill_point("sample");
  me.count_finished();
  me.show("generate", i64(me.finished_), me.sizes_.prompts * me.sizes_.group);
  if (io::asked_to_stop() == SIGTERM) throw left_early{};
}
WEFT_FUNCTION void run::count_finished() {
  if (++finished_ == size_t(sizes_.prompts * sizes_.group)) journal_->sync();
}
WEFT_FUNCTION void run::show(char const* stage, i64 done, i64 total) {
  double const eta = seconds_of_step_ > 0 ? seconds_of_step_ * double(steps_ - done_) : -1;
  bool const over = stage[0] == 's';  // the step; else one of its stages
  progress_.show({stage, done_ + (done_ < steps_ && !over), steps_, done, total, tokens_per_second_, reward_mean_, eta, waits_for_, knob_});
}

// ---- validation -------------------------------------------------------------------------------------------------
WEFT_FUNCTION std::vector<row_feed::row> run::validation_rows(size_t first, size_t count) {
  auto const numbers = [&](size_t from) {
    std::vector<u64> rows;
    for (size_t i = from; i < std::min(from + count, validation_.size()); ++i) rows.push_back(i);
    return rows;
  };
  return validation_rows_->take(numbers(first), numbers(first + count));
}
WEFT_FUNCTION void run::add_validation(size_t row, rl::reward_result const& r) {
  double const value = r.what == rl::reward_result::scored ? double(r.value) : 0;
  metrics_.add(fmt::format("val-core/{}/reward/mean@{}", validation_rows_->at(row)->data_source, options_.rollout.val_kwargs.n), value, 1,
               io::reduction::mean);
  right_ += value;
  unscored_ += r.what != rl::reward_result::scored;
  ++asked_;
}
WEFT_FUNCTION double run::accuracy() {
  if (asked_ == 0) return -1;
  double const share = right_ / asked_;
  progress_.say(fmt::format("step {}: val accuracy {:.3f}{}", done_, share,
                            unscored_ > 0 ? fmt::format(" ({} of {} answers have no score and count as 0)", unscored_, asked_) : ""));
  right_ = asked_ = unscored_ = 0;
  return share;
}
}  // namespace weft::train
#undef WEFT_FUNCTION
