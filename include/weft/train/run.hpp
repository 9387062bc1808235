// run.hpp — everything of a run that no graph type touches: files, data, the order of rows, journal, checkpoints, metrics, progress.
// Its functions are in run_functions.hpp; a program of several files defines WEFT_COMPILED and compiles those in one of them.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include <weft/io/checkpoint.hpp>
#include <weft/io/lock.hpp>
#include <weft/io/progress.hpp>
#include <weft/io/stop.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/optim/clip.hpp>
#include <weft/plan.hpp>
#include <weft/train/batches.hpp>
#include <weft/train/bottleneck.hpp>
#include <weft/train/memory_parts.hpp>
#include <weft/train/model_files.hpp>
#include <weft/train/rewards.hpp>
#include <weft/train/row_feed.hpp>
#include <weft/train/rule_rewards.hpp>
#include <weft/train/run_folder.hpp>
#include <weft/train/sample_journal.hpp>
#include <weft/train/settings.hpp>
#include <weft/train/step_metrics.hpp>
#include <weft/train/task_source.hpp>

namespace weft::train {
struct needs {                             // of a recipe
  bool supervised = false, pairs = false;  // answers come with the data: one a row, or two
  bool critic = false, reference = false, teacher = false;
  bool labels = false;  // the policy is a model with one label: a reward model
  bool scored = true;   // a step without any score trains nothing
  bool tasks = false;   // demonstrations and pairs beside the rollouts
};

// Columns of the samples of a step; a null column is not there. Samples are [prompt, group], tokens [prompt, group, position].
struct step_columns {
  sample_columns samples;
  i32 const* tokens = nullptr;                                             // [samples, position]
  f32 const *advantages = nullptr, *returns = nullptr, *values = nullptr;  // [tokens]
  double const* kl_means = nullptr;                                        // [samples]
  i32 const* group_drops = nullptr;                                        // [prompts]
  double const* rollout_sums = nullptr;                                    // [11]
};
struct left_early {};    // SIGTERM came while samples were drawn: nothing of the step has changed the weights yet
struct update_columns {  // of one model
  char const* who;
  double const* sums;  // loss_sums
  f32 const* norms;    // [updates]
  size_t updates;
  double lr;
  metric_names names;
};

class run {
 public:
  run(options, needs, reward_function);  // reads and checks; takes no memory for models. No function: the one that options name
  run(run const&) = delete;

  options const& asked() const { return options_; }
  batch_sizes const& sizes() const { return sizes_; }
  model_files& actor() { return actor_; }
  model_files const& actor() const { return actor_; }
  model_files* critic() { return critic_ ? &*critic_ : nullptr; }
  model_files* teacher() { return teacher_ ? &*teacher_ : nullptr; }
  model_files* reference() { return reference_ ? &*reference_ : nullptr; }
  i64 validation_rows() const { return i64(validation_.size()); }
  kernels::threads& pool() { return pool_; }
  io::path out() const { return options_.trainer.default_local_dir; }
  i64 steps() const { return steps_; }
  i64 done() const { return done_; }
  bool resumed() const { return resumed_; }
  bool due(i64 frequency) const { return frequency > 0 && done_ % frequency == 0; }
  bool warming() const { return critic_ && done_ < options_.trainer.critic_warmup; }
  f32 kl_coefficient() const { return options_.algorithm.use_kl_in_reward ? f32(kl_coefficient_) : 0; }
  template <class Use> rl::reward_source<Use> training_reward() { return train_reward_->source<Use>(); }
  rl::reward_source<rl::validation> validation_reward() { return validation_reward_->source<rl::validation>(); }
  template <class Use> rl::decoding<Use> decoding();  // watched by the journal if Use is training

  void check_memory(size_t bytes, std::vector<buffer_line> parts) const;  // refuses what does not fit
  std::string batch_arithmetic() const;
  void record(char const* name, std::string text);  // a file of the run's folder, written when it is opened
  void fact(char const* name, std::string value) { facts_.emplace_back(name, std::move(value)); }  // for run.json
  void open();                                                                                     // folder, lock, journal
  void resume(std::span<io::place const>);  // from the newest checkpoint, if there is one
  void save(std::span<io::blob const>);
  void save_early(std::span<io::blob const>);  // in the middle of a step that nothing has trained on yet: its samples stay in the journal

  // ---- a step: its rows, then its numbers
  // Dynamic sampling: before take_rows; rounds of take_rows, a graph without updates and collect until it says true; then take_kept.
  bool filters() const { return options_.algorithm.filter_groups.enable; }
  bool collect(group_filter::columns const&);
  void take_kept();
  struct prompt_row {
    io::data_row const& row;
    i64 index;
    u32 draw;
  };
  void take_rows();  // of the next step; those of the step after it are read ahead
  // Tasks beside the rollouts: prompt i of the step belongs to one of them, or to none (0).
  i32 task_of(size_t i) const;
  prompt_row row_of(size_t i) const;  // prompt i of the next step
  void begin_step(u32 source);        // source: checksum of what decides the samples
  void end_step();                    // the step is done, and counts
  void add(step_columns const&);
  void add(update_columns const&);
  void add(rl::correction_row const& c) { add_correction_metrics(metrics_, c); }
  void add_task(double const* sums, metric_names const&, size_t updates);    // the metrics of one more task
  void watch(weft::detail::program const&, std::vector<device_map> const&);  // of the bound step, for what follows
  double* seconds() { return seconds_.data(); }                              // where the engine adds up the time of each node in this step
  static void stage_ended(void* context, size_t node, double start, double end);
  void add_times(double start, double end);  // of the graph's step; its stages were seen by stage_ended
  void finish_metrics(double seconds);
  void write_metrics() { folder_->write(done_, metrics_); }
  void finish_folder() { folder_->finish(); }  // what is written whole: the report among it
  void stop_if_stuck() const;                  // throws after three steps in a row that trained nothing
  io::metrics const& metrics() const { return metrics_; }

  // ---- validation
  std::vector<row_feed::row> validation_rows(size_t first, size_t count);  // up to `count` rows
  void add_validation(size_t row, rl::reward_result const&);
  double accuracy();  // of what was added since; -1: nothing was
  double first_accuracy = -1, last_accuracy = -1;

 private:
  options options_;
  needs needs_;
  batch_sizes sizes_;
  model_files actor_;
  std::optional<model_files> critic_, reference_, teacher_;
  std::unique_ptr<io::tokenizer> words_;
  io::dataset train_, validation_;
  std::optional<row_feed> train_rows_, validation_rows_;
  std::vector<placed_prompt> current_;  // prompts of the step
  group_filter filter_;
  std::optional<reward_caller> train_reward_, validation_reward_;
  row_order order_;
  std::vector<std::unique_ptr<task_source>> tasks_;  // demonstrations, pairs
  io::data_row const& task_row(size_t prompt) const;
  std::vector<i32> stop_ids_;
  kernels::threads pool_;
  std::optional<io::folder_lock> lock_;
  std::optional<sample_journal> journal_;
  std::optional<run_folder> folder_;
  io::metrics metrics_;
  io::progress progress_;
  std::vector<std::pair<std::string, std::string>> records_, facts_;
  optim::finite_guard guard_;
  bool finite_ = true, scored_ = true;  // of this step: the updates; some sample had a score
  i64 drawn_ = 0;                       // batches of prompts so far: one a step, or more with dynamic sampling
  i64 drawn_by_done_ = 0;               // of the steps that are done
  i64 steps_ = 0, done_ = 0;            // of the run; committed so far
  bool resumed_ = false;
  double kl_coefficient_ = 0, reward_mean_ = 0, tokens_per_second_ = 0, seconds_of_step_ = 0, right_ = 0, asked_ = 0, unscored_ = 0;
  size_t finished_ = 0;             // samples of this step, for the journal and the progress line
  i64 saved_ = -1;                  // the newest step that a checkpoint holds
  std::vector<char const*> parts_;  // of a step, by node, in verl's names
  std::vector<double> seconds_;     // of this step, by node
  std::vector<i64> profiled_;       // steps for trace.json
  std::vector<bool> on_host_;       // by node
  double arena_fill_ = 0, planned_bytes_ = 0, host_syncs_ = 0;
  step_times times_;
  char const *waits_for_ = "", *knob_ = "";

  void read_data();
  void order_rows();
  static std::string left_out(io::dataset const&);  // how many rows, in words; empty: none
  std::vector<u64> row_numbers(i64 step) const;
  std::vector<std::pair<std::string, i64>> identity() const;
  void control_kl(step_columns const&);
  void show_samples(step_columns const&);
  std::string information() const;
  void count_finished();
  void show(char const* stage, i64 done = 0, i64 total = 0);
  static bool known(void* context, rollout::sample_view<f32> const&);
  static void finished(void* context, rollout::sample_view<f32> const&);
};

template <class Use> rl::decoding<Use> run::decoding() {
  rl::decoding<Use> d;
  d.seed = u64(options_.seed);
  d.sampled_ids = words_ ? words_->size() : 0;
  d.stop.ids = stop_ids_.data();
  d.stop.id_count = i32(stop_ids_.size());
  if constexpr (std::is_same_v<Use, rl::training>) d.watch = {this, &known, &finished};
  return d;
}
}  // namespace weft::train

#ifndef WEFT_COMPILED
#include <weft/train/run_functions.hpp>
#endif
