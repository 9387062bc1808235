// trainer.hpp — runs a recipe over data: feeds prompts, steps the graph, records, validates, saves, resumes. All numbers of the run live in the graph.
//   weft::train::trainer<weft::rl::grpo<>> t(options);
//   t.train();
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>

#include <weft/engine/cpu.hpp>
#include <weft/io/checkpoint.hpp>
#include <weft/io/lock.hpp>
#include <weft/io/metrics.hpp>
#include <weft/io/progress.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/optim/clip.hpp>
#include <weft/plan.hpp>
#include <weft/recipes/validate.hpp>
#include <weft/train/batches.hpp>
#include <weft/train/model_files.hpp>
#include <weft/train/rewards.hpp>
#include <weft/train/sample_journal.hpp>
#include <weft/train/settings.hpp>
#include <weft/train/step_metrics.hpp>

namespace weft::train {
struct result {
  double first_accuracy = -1, last_accuracy = -1;             // of validation; -1: there was none
  double seconds = 0;
  i64 steps = 0;
};

// Own: settings of the graph's own stages, given to the constructor after the reward.
template <class Graph, class Objective = rl::policy_objective, class... Own> class trainer {
  template <class P> static constexpr bool has = weft::detail::has_port<P, Graph>();
  static constexpr bool supervised = has<rl::tokens<rl::training>> && !has<rl::scores<rl::training>>;
  static constexpr bool has_critic = has<rl::weights<rl::critic>>, has_reference = has<rl::weights<rl::reference>>;
  using step_graph = Graph;
  using bound_graphs = bound<cpu, Graph, rl::validate>;

 public:
  std::function<void(i64 step, io::metrics const&)> after_step;   // called when a step is done and its numbers are on disk

  explicit trainer(options o, reward_function reward = exact_match, Own const&... own)
      : options_(std::move(o)), own_(own...), sizes_(sizes_of(options_)), actor_(options_.actor.path, 0, options_.algorithm.name == "sft"), pool_(size_t(options_.threads)) {
    if constexpr (has_critic) critic_.emplace(options_.critic.path.empty() ? options_.actor.path : options_.critic.path, 1, false);
    if constexpr (has_reference) reference_.emplace(options_.ref.path.empty() ? options_.actor.path : options_.ref.path, 0, false);
    if (std::filesystem::exists(actor_.folder() / "tokenizer.json")) words_ = io::read_tokenizer(actor_.folder());
    read_data();
    train_reward_.emplace(train_, words_.get(), reward);
    validation_reward_.emplace(validation_, words_.get(), reward);
    order_ = {train_.rows.size(), u64(sizes_.prompts), u64(options_.data.seed < 0 ? options_.seed : options_.data.seed), options_.data.shuffle};
    if (order_.rows < order_.batch) io::refuse("the training data has {} rows, fewer than data.train_batch_size={}; lower it", order_.rows, order_.batch);
    auto const& t = options_.trainer;
    steps_ = t.total_training_steps > 0 ? t.total_training_steps : t.total_epochs * i64(order_.steps_of_epoch());
    stop_ids_ = io::read_eos_ids(actor_.folder(), actor_.found());
    if (stop_ids_.empty() && words_) stop_ids_ = words_->eos_ids();
    check_memory();
  }

  // What a step will do, and the bytes of everything, without taking them.
  std::string plan(plan_form form = plan_form::text) const { return plan_text(bind_all(dry{}), form) + batch_arithmetic(); }
  void record(char const* name, std::string const& text) {    // a file of the run's folder
    io::make_folder(out());
    io::write_file(out() / name, text);
  }

  result train() {
    open_folder();
    graphs_.reset(new bound_graphs(bind_all(cpu{{&pool_}})));
    time_stages();
    load();
    result r;
    auto const start = std::chrono::steady_clock::now();
    if (!resumed_ && options_.trainer.val_before_train) first_accuracy_ = validate(0);
    for (; done_ < steps_ && !options_.trainer.val_only; ) {
      step();
      bool const last = done_ == steps_;
      if (due(options_.trainer.test_freq) || last) last_accuracy_ = validate(done_);
      metrics_file_->write(done_, metrics_);
      if (after_step) after_step(done_, metrics_);
      if (due(options_.trainer.save_freq) || last) save();
    }
    if (last_accuracy_ < 0) last_accuracy_ = first_accuracy_;
    save_model(out() / "model", actor_, weights_of<rl::actor>());
    if constexpr (has_critic) save_model(out() / "critic", *critic_, weights_of<rl::critic>());
    r.first_accuracy = first_accuracy_;
    r.last_accuracy = last_accuracy_;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    r.steps = done_;
    return r;
  }
  bound_graphs& graphs() { return *graphs_; }
  io::path out() const { return options_.trainer.default_local_dir; }

 private:
  options options_;
  std::tuple<Own...> own_;
  batch_sizes sizes_;
  model_files actor_;
  std::optional<model_files> critic_, reference_;
  std::unique_ptr<io::tokenizer> words_;
  io::dataset train_, validation_;
  std::optional<reward_caller> train_reward_, validation_reward_;
  row_order order_;
  std::vector<i32> stop_ids_;
  kernels::threads pool_;
  std::unique_ptr<bound_graphs> graphs_;
  std::optional<io::folder_lock> lock_;
  std::optional<sample_journal> journal_;
  std::optional<io::metrics_file> metrics_file_;
  io::metrics metrics_;
  io::progress progress_;
  optim::finite_guard guard_;
  i64 steps_ = 0, done_ = 0;                                  // of the run; committed so far
  bool resumed_ = false;
  double first_accuracy_ = -1, last_accuracy_ = -1, kl_coefficient_ = 0, reward_mean_ = 0, tokens_per_second_ = 0, seconds_of_step_ = 0;
  std::vector<double> seconds_;                               // of the last step, by node of the plan
  std::vector<size_t> parts_;                                 // of a node: which of part_names
  double step_seconds_ = 0;
  size_t finished_ = 0;                                       // samples of this step, for the journal and the progress line

  template <class P> auto view() { return graphs_->template view_of<P>(); }
  template <class M> f32* weights_of() { return view<rl::weights<M>>().data; }
  bool due(i64 frequency) const { return frequency > 0 && done_ % frequency == 0; }

  // ---- before the first step ------------------------------------------------------------------------------
  void read_data() {
    io::dataset_options d;
    d.prompt_key = options_.data.prompt_key;
    d.reward_fn_key = options_.data.reward_fn_key;
    d.vocab = actor_.config().vocab;
    d.max_prompt_length = i32(options_.data.max_prompt_length);
    d.max_response_length = i32(options_.data.max_response_length);
    d.filter_overlong_prompts = options_.data.filter_overlong_prompts;
    d.truncate = options_.data.truncation == "left" ? io::truncation::left : options_.data.truncation == "right" ? io::truncation::right
               : options_.data.truncation == "middle" ? io::truncation::middle : io::truncation::error;
    auto const read = [&](std::vector<std::string> const& files, bool with_response) {
      d.supervised = with_response;
      d.response_key = with_response ? options_.data.response_key : "";
      return io::read_dataset(std::vector<io::path>(files.begin(), files.end()), d, words_.get());
    };
    if (options_.data.train_files.empty()) io::refuse("no training data: give a JSONL file with --data");
    train_ = read(options_.data.train_files, supervised);
    if (!options_.data.val_files.empty()) validation_ = read(options_.data.val_files, false);
  }

  template <class E> bound<E, Graph, rl::validate> bind_all(E on) const {
    auto const& c = actor_.config();
    auto const& o = options_;
    i64 const val_rows = std::max<i64>(1, i64(validation_.rows.size())), val_batch = o.data.val_batch_size > 0 ? std::min(o.data.val_batch_size, val_rows) : val_rows;
    rl::config<rl::actor> ca{c};
    rl::config<rl::critic> cc{critic_ ? critic_->config() : c};
    rl::config<rl::reference> cr{reference_ ? reference_->config() : c};
    rl::decoding<rl::training> how;
    rl::decoding<rl::validation> val_how;
    how.seed = val_how.seed = u64(o.seed);
    how.sampled_ids = val_how.sampled_ids = words_ ? words_->size() : 0;
    how.stop.ids = val_how.stop.ids = stop_ids_.data();
    how.stop.id_count = val_how.stop.id_count = i32(stop_ids_.size());
    how.watch = {const_cast<trainer*>(this), &known, &finished};
    i64 const scoring_tokens = o.actor.ppo_max_token_len_per_gpu;
    rl::optimizer<rl::actor> oa{optimizer_of(o.actor.optim)};
    rl::optimizer<rl::critic> oc{optimizer_of(o.critic.optim)};
    return weft::bind<Graph, rl::validate>(
        on, rl::prompt<rl::training>{{size_t(sizes_.prompts)}}, rl::group<rl::training>{{size_t(sizes_.group)}},
        rl::prompt_position<rl::training>{{size_t(sizes_.prompt_room)}}, rl::position<rl::training>{{size_t(sizes_.room)}},
        rl::prompt<rl::validation>{{size_t(val_batch)}}, rl::group<rl::validation>{{size_t(o.rollout.val_kwargs.n)}},
        rl::prompt_position<rl::validation>{{size_t(sizes_.prompt_room)}}, rl::position<rl::validation>{{size_t(sizes_.room)}},
        rl::rope_position{{size_t(sizes_.prompt_room + sizes_.room)}}, rl::lane{{1}}, rl::epoch<rl::actor>{{size_t(supervised ? 1 : o.actor.ppo_epochs)}},
        rl::epoch<rl::critic>{{size_t(o.critic.ppo_epochs)}}, rl::minibatch<rl::actor>{{size_t(sizes_.actor_minibatches)}},
        rl::minibatch<rl::critic>{{size_t(sizes_.critic_minibatches)}}, ca, cc, cr, generation_of<rl::training>(o, c, sizes_.prompts, sizes_.group),
        generation_of<rl::validation>(o, c, val_batch, o.rollout.val_kwargs.n), how, val_how, const_cast<reward_caller&>(*train_reward_).template source<rl::training>(),
        const_cast<reward_caller&>(*validation_reward_).template source<rl::validation>(), baseline_of(o), objective::gae_settings{o.algorithm.gamma, o.algorithm.lam},
        rl::kl_in_reward{detail::named(objective::kl_estimator_names, "algorithm.kl_penalty", o.algorithm.kl_penalty).estimator},
        budget_of<rl::actor>(o.actor.ppo_max_token_len_per_gpu, o.actor.use_dynamic_bsz ? 0 : o.actor.ppo_micro_batch_size_per_gpu, o.actor.enable_gradient_checkpointing),
        budget_of<rl::critic>(o.critic.ppo_max_token_len_per_gpu, o.actor.use_dynamic_bsz ? 0 : o.critic.ppo_micro_batch_size_per_gpu, o.critic.enable_gradient_checkpointing),
        budget_of<rl::scoring>(scoring_tokens, 0, true), oa, oc, loss(), value_objective_of(o), std::get<Own>(own_)...);
  }
  Objective loss() const {
    if constexpr (supervised) return aggregated_as<Objective>(options_, options_.actor.loss_agg_mode);
    else return policy_objective_of<Objective>(options_);
  }

  // A plan that does not fit is refused here, with its largest parts, before anything is taken.
  void check_memory() const {
    u64 const there = u64(::sysconf(_SC_PHYS_PAGES)) * u64(::sysconf(_SC_PAGE_SIZE)), limit = options_.device_memory > 0 ? u64(options_.device_memory) : there;
    auto const sized = bind_all(dry{});
    u64 need = 0;
    std::vector<buffer_line> parts;
    for (size_t g = 0; g < 2; ++g)
      for (auto const& map : memory_map(sized, g)) {
        if (g == 0) need += (map.arena + map.state) * map.count;
        for (auto const& b : map.buffers) parts.push_back(b);
      }
    if (need <= limit) return;
    std::sort(parts.begin(), parts.end(), [](auto const& a, auto const& b) { return a.bytes > b.bytes; });
    std::string largest;
    for (size_t i = 0; i < 4 && i < parts.size(); ++i) largest += fmt::format("{}{} {:.2f} GB", i ? ", " : "", parts[i].port, double(parts[i].bytes) / 1e9);
    io::refuse("the plan needs {:.2f} GB and {:.2f} GB are there: {}; lower train_batch_size, ppo_max_token_len_per_gpu, max_num_seqs or kv_pages", double(need) / 1e9,
               double(limit) / 1e9, largest);
  }
  std::string batch_arithmetic() const {
    return fmt::format("batch\n  {} prompts x {} = {} samples a step, {} epochs of {} mini-batches, micro-batches of {} tokens\n  {} rows of training data, {} steps an epoch, {} steps; {} rows of validation\n"
                       "  {} threads\n",
                       sizes_.prompts, sizes_.group, sizes_.prompts * sizes_.group, supervised ? 1 : options_.actor.ppo_epochs, sizes_.actor_minibatches,
                       options_.actor.ppo_max_token_len_per_gpu, order_.rows, order_.steps_of_epoch(), steps_, validation_.rows.size(), pool_.size());
  }

  // verl's names of a step's parts, by what a node of the plan is called.
  static constexpr char const* part_names[] = {"gen", "reward", "ref", "values", "update_critic", "update_actor", "adv"};
  static size_t part_of(std::string const& name) {
    char const* const signs[] = {"generate<", "reward<", "reference", "state_values", "<critic", "<actor"};
    size_t part = 0;
    while (part < std::size(signs) && name.find(signs[part]) == name.npos) ++part;
    return part;
  }
  void time_stages() {
    auto const& p = graphs_->template program_of<Graph>();
    seconds_.assign(p.n, 0);
    parts_.clear();
    for (size_t n = 0; n < p.n; ++n) parts_.push_back(part_of(weft::detail::node_name(p, n)));
  }
  void add_times() {
    double of_part[std::size(part_names)]{}, all = 0;
    for (size_t n = 0; n < seconds_.size(); ++n) of_part[parts_[n]] += seconds_[n], all += seconds_[n];
    for (size_t i = 0; i < std::size(part_names); ++i)
      if (of_part[i] > 0) metrics_.add(std::string("timing_s/") + part_names[i], of_part[i], 1, io::reduction::sum);
    metrics_.add("timing_s/engine", step_seconds_ - all, 1, io::reduction::sum);   // the graph's own: what is in no stage
  }

  void open_folder() {
    io::make_folder(out());
    lock_.emplace(out());
    journal_.emplace(out() / "samples.journal");
  }
  template <class M> void load_model(model_files& files, u64 seed) {
    files.load(seed, weights_of<M>());
    model::fill_rope_table<f32>(files.config(), size_t(sizes_.prompt_room + sizes_.room), view<rl::rope_table<M>>().data);
  }
  template <class M> void clear_optimizer() {
    auto const m = view<rl::moments<M>>();
    std::fill_n(m.data, m.count(), 0.0f);
    view<rl::updates_done<M>>()() = 0;
  }
  void load() {
    load_model<rl::actor>(actor_, u64(options_.seed));
    clear_optimizer<rl::actor>();
    if constexpr (has_critic) load_model<rl::critic>(*critic_, u64(options_.seed)), clear_optimizer<rl::critic>();
    if constexpr (has_reference) load_model<rl::reference>(*reference_, u64(options_.seed));
    kl_coefficient_ = options_.algorithm.kl_ctrl.kl_coef;
    if (options_.trainer.resume_mode != "disable") resume();
    metrics_file_.emplace(out() / "metrics.jsonl", done_ + (done_ > 0));
  }

  // ---- checkpoint -------------------------------------------------------------------------------------------
  template <class Place, class M> void add_state(std::vector<Place>& to, std::string const& name) {
    auto const add = [&](char const* what, auto const& v) { to.push_back({name + what, v.data, v.count() * sizeof *v.data}); };
    add(".weights", view<rl::weights<M>>());
    add(".moments", view<rl::moments<M>>());
    add(".updates", view<rl::updates_done<M>>());
  }
  template <class Place> std::vector<Place> state() {
    std::vector<Place> all;
    add_state<Place, rl::actor>(all, "actor");
    if constexpr (has_critic) add_state<Place, rl::critic>(all, "critic");
    return all;
  }
  // What a run must have in common with the one it goes on with.
  std::vector<std::pair<std::string, i64>> identity() const {
    return {{"seed", options_.seed}, {"data.train_batch_size", sizes_.prompts}, {"rollout.n", sizes_.group}, {"rows of the training data", i64(train_.rows.size())}};
  }
  void save() {
    io::json::object same;
    for (auto const& [name, value] : identity()) same.emplace_back(name, value);
    io::json const all = io::json::object{{"identity", std::move(same)}, {"first_accuracy", first_accuracy_}, {"kl_coefficient", kl_coefficient_}, {"skipped_in_a_row", guard_.in_a_row}};
    auto const blobs = state<io::blob>();
    i64 const keep = options_.trainer.max_ckpt_to_keep;
    io::save_checkpoint(out(), done_, blobs, all, keep > 0 ? size_t(keep) : 0);
    journal_->committed();
  }
  void resume() {
    auto const places = state<io::place>();
    io::path const from = options_.trainer.resume_mode == "resume_path" ? io::path(options_.trainer.resume_from_path) : out();
    auto const found = io::load_checkpoint(from, places, [&](std::string const& line) { progress_.say(line); });
    if (!found) return;
    std::string const where = found->folder.string();
    for (auto const& [name, value] : identity()) {
      i64 const was = io::integer_of(found->state.at("identity", where), name, INT64_MIN, INT64_MAX, where);
      if (was != value) io::refuse("{}: {} was {}, this run has {}; use the same, or another --out", where, name, was, value);
    }
    done_ = found->step;
    first_accuracy_ = io::number_or(found->state, "first_accuracy", -1, -1, 1e9, where);
    kl_coefficient_ = io::number_or(found->state, "kl_coefficient", kl_coefficient_, -1e9, 1e9, where);
    guard_.in_a_row = i32(io::integer_of(found->state, "skipped_in_a_row", 0, 1 << 20, where));
    resumed_ = true;
    progress_.say(fmt::format("resumed at step {} from {}; {} finished samples in the journal", done_, where, journal_->known()));
  }

  // ---- one step ---------------------------------------------------------------------------------------------
  template <class Use> void feed_prompt(size_t i, io::data_row const* row, i64 index, u32 draw, kernels::sampling const& how) {
    auto const p = view<rl::prompts<Use>>();
    size_t const room = p.template extent<rl::prompt_position<Use>>(), n = row ? row->prompt.size() : 0;
    std::fill_n(p.data + i * room, room, 0);
    if (row) std::copy_n(row->prompt.data(), n, p.data + i * room);
    view<rl::prompt_lengths<Use>>()(i) = i32(n);
    if constexpr (!supervised || std::is_same_v<Use, rl::validation>) {
      view<rl::rows<Use>>()(i) = row ? i32(index) : -1;
      view<rl::draws<Use>>()(i) = draw;
      view<rl::sampling_of<Use>>()(i) = how;
    }
  }
  void feed_response(size_t i, io::data_row const& row) {
    auto const t = view<rl::tokens<rl::training>>();
    size_t const room = t.template extent<rl::position<rl::training>>();
    std::fill_n(t.data + i * room, room, 0);
    std::copy_n(row.response.data(), row.response.size(), t.data + i * room);
    view<rl::lengths<rl::training>>().flat(i) = i32(row.response.size());
    view<rl::included>().flat(i) = 1;
  }
  template <class M> double feed_update(i64 step, i64 passes, bool shuffled, optimizer_options const& o) {
    double const lr = optim::learning_rate(schedule_of(o, steps_), step);
    view<rl::passes<M>>()() = i32(passes);
    view<rl::learning_rate<M>>()() = f32(lr);
    auto const seeds = view<rl::epoch_seed<M>>();
    for (size_t e = 0; e < seeds.count(); ++e) seeds(e) = shuffled ? 1 + u32((u64(options_.seed) * 1000003 + u64(step)) * 64 + e) : 0;
    return lr;
  }

  void step() {
    auto const start = std::chrono::steady_clock::now();
    i64 const step = done_;
    auto const& o = options_;
    for (size_t i = 0; i < size_t(sizes_.prompts); ++i) {
      auto const at = order_.at(u64(step), i);
      auto const& row = train_.rows[at.row];
      feed_prompt<rl::training>(i, &row, i64(at.row), u32(at.epoch * order_.rows + at.row), training_sampling(o));
      if constexpr (supervised) feed_response(i, row);
    }
    bool const warming = has_critic && step < o.trainer.critic_warmup;
    double const lr = feed_update<rl::actor>(step, warming ? 0 : supervised ? 1 : o.actor.ppo_epochs, o.actor.shuffle, o.actor.optim);
    double critic_lr = 0;
    if constexpr (has_critic) {
      critic_lr = feed_update<rl::critic>(step, o.critic.ppo_epochs, o.critic.shuffle, o.critic.optim);
      view<rl::kl_coefficient>()() = o.algorithm.use_kl_in_reward ? f32(kl_coefficient_) : 0;
    }
    finished_ = 0;
    journal_->begin_step(step);
    io::kill_point("step");
    std::fill(seconds_.begin(), seconds_.end(), 0.0);
    graphs_->executor().seconds = seconds_.data();
    double const began = weft::detail::now();
    graphs_->template step<step_graph>();
    step_seconds_ = weft::detail::now() - began;
    graphs_->executor().seconds = nullptr;
    io::kill_point("stepped");
    ++done_;

    metrics_.clear();
    metrics_.add("training/global_step", double(done_), 1, io::reduction::mean);
    metrics_.add("training/epoch", double(order_.at(u64(step), 0).epoch), 1, io::reduction::mean);
    if constexpr (!supervised) add_rollout();
    size_t const updates = warming ? 0 : view<rl::gradient_norms<rl::actor>>().count();
    add_update<rl::actor, Objective>("actor", updates, lr);
    if constexpr (has_critic) add_update<rl::critic, rl::value_objective>("critic", view<rl::gradient_norms<rl::critic>>().count(), critic_lr);
    seconds_of_step_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    auto const* const tokens = metrics_.find("perf/total_num_tokens");
    tokens_per_second_ = tokens ? tokens->value() / seconds_of_step_ : 0;
    add_times();
    metrics_.add("perf/time_per_step", seconds_of_step_, 1, io::reduction::mean);
    metrics_.add("timing_s/step", seconds_of_step_, 1, io::reduction::mean);
    metrics_.add("perf/throughput", tokens_per_second_, 1, io::reduction::mean);
    show("update", 1);
  }
  void add_rollout() {
    auto const n = view<rl::lengths<rl::training>>();
    auto const scores = view<rl::scores<rl::training>>();
    add_sample_metrics(metrics_, {view<rl::prompt_lengths<rl::training>>().data, n.data, view<rl::finishes<rl::training>>().data, scores.data, n.count(),
                                  size_t(sizes_.group), size_t(sizes_.room)});
    add_rollout_metrics(metrics_, view<rl::rollout_sums<rl::training>>().data);
    auto const* const mean = metrics_.find("critic/score/mean");
    reward_mean_ = mean ? mean->value() : 0;
    size_t const room = size_t(sizes_.room);
    auto const a = view<rl::advantages>();
    for (size_t s = 0; s < n.count(); ++s)
      for (size_t t = 0; scores.flat(s).what == rl::reward_result::scored && t < size_t(n.flat(s)); ++t) {
        add_spread(metrics_, "critic/advantages", double(a.flat(s * room + t)));
        if constexpr (has_critic) {
          add_spread(metrics_, "critic/returns", double(view<rl::returns>().flat(s * room + t)));
          add_spread(metrics_, "critic/values", double(view<rl::values>().flat(s * room + t)));
        }
      }
    if constexpr (has<rl::group_drops>) {
      auto const dropped = view<rl::group_drops>();
      for (size_t p = 0; p < dropped.count(); ++p) metrics_.add("training/dropped_groups", dropped(p), 1, io::reduction::sum);
    }
    if constexpr (has<rl::kl_means>) control_kl(scores);
  }
  void control_kl(auto const& scores) {
    auto const& k = options_.algorithm.kl_ctrl;
    auto const kl = view<rl::kl_means>();
    double sum = 0, count = 0;
    for (size_t s = 0; s < kl.count(); ++s)
      if (scores.flat(s).what == rl::reward_result::scored) sum += kl.flat(s), ++count;
    if (!options_.algorithm.use_kl_in_reward || count == 0) return;
    metrics_.add("actor/reward_kl_penalty", sum, count, io::reduction::mean);
    metrics_.add("actor/reward_kl_penalty_coeff", kl_coefficient_, 1, io::reduction::mean);
    kl_coefficient_ = objective::next_kl_coefficient({k.type == "adaptive", k.kl_coef, k.target_kl, double(k.horizon)}, kl_coefficient_, sum / count, count);
  }
  template <class M, class O> void add_update(std::string const& who, size_t updates, double lr) {
    auto const sums = view<rl::loss_sums<M>>();
    auto const norms = view<rl::gradient_norms<M>>();
    add_update_metrics<O>(metrics_, who, sums.data, norms.data, updates, lr);
    i32 const before = guard_.skipped;
    for (size_t i = 0; i < updates; ++i) guard_.admit(sums(0), double(norms.flat(i)));
    metrics_.add("training/skipped_updates", guard_.skipped - before, 1, io::reduction::sum);
    if (guard_.must_stop())
      throw std::runtime_error(fmt::format("the loss or gradient of {} was not finite {} times in a row; stopped at step {}", who, guard_.in_a_row, done_));
  }

  static bool known(void* context, rollout::sample_view<f32> const& s) {
    auto& me = *static_cast<trainer*>(context);
    bool const found = me.journal_->take(s);
    if (found) me.count_finished();
    return found;
  }
  static void finished(void* context, rollout::sample_view<f32> const& s) {
    auto& me = *static_cast<trainer*>(context);
    me.journal_->put(s);
    io::kill_point("sample");
    me.count_finished();
    me.show("generate", double(me.finished_) / double(me.sizes_.prompts * me.sizes_.group));
  }
  void count_finished() {
    if (++finished_ == size_t(sizes_.prompts * sizes_.group)) journal_->sync();
  }
  void show(char const* stage, double) {
    double const eta = seconds_of_step_ > 0 ? seconds_of_step_ * double(steps_ - done_) : -1;
    progress_.show({stage, done_ + (done_ < steps_ && stage[0] == 'g'), steps_, tokens_per_second_, reward_mean_, eta});
  }

  // ---- validation -------------------------------------------------------------------------------------------
  double validate(i64 step) {
    if (validation_.rows.empty()) return -1;
    size_t const at_once = view<rl::prompts<rl::validation>>().template extent<rl::prompt<rl::validation>>();
    double sum = 0, count = 0;
    for (size_t first = 0; first < validation_.rows.size(); first += at_once) {
      for (size_t i = 0; i < at_once; ++i) {
        bool const there = first + i < validation_.rows.size();
        feed_prompt<rl::validation>(i, there ? &validation_.rows[first + i] : nullptr, i64(first + i), 0x80000000u | u32(first + i), validation_sampling(options_));
      }
      graphs_->template step<rl::validate>();
      auto const scores = view<rl::scores<rl::validation>>();
      for (size_t s = 0; s < scores.count(); ++s) {
        if (first + s / size_t(options_.rollout.val_kwargs.n) >= validation_.rows.size()) continue;
        auto const& row = validation_.rows[first + s / size_t(options_.rollout.val_kwargs.n)];
        double const value = scores.flat(s).what == rl::reward_result::scored ? double(scores.flat(s).value) : 0;
        metrics_.add(fmt::format("val-core/{}/reward/mean@{}", row.data_source, options_.rollout.val_kwargs.n), value, 1, io::reduction::mean);
        sum += value;
        ++count;
      }
    }
    progress_.say(fmt::format("step {}: val accuracy {:.3f}", step, sum / count));
    return sum / count;
  }
};
}  // namespace weft::train
