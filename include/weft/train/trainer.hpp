// trainer.hpp — runs a recipe over data: binds its graph, feeds prompts, steps, validates, saves, resumes. All numbers of the model live in the graph.
//   weft::train::trainer<weft::rl::grpo<>> t(options);
//   t.train();
#pragma once
#include <chrono>
#include <functional>
#include <tuple>

#include <weft/engine/cpu.hpp>
#include <weft/model/rope_table.hpp>
#include <weft/recipes/validate.hpp>
#include <weft/step.hpp>
#include <weft/train/explain.hpp>
#include <weft/train/run.hpp>

namespace weft::train {
struct result {
  double first_accuracy = -1, last_accuracy = -1;  // of validation; -1: there was none
  double seconds = 0;
  i64 steps = 0;
  int stopped_by = 0;  // the signal that ended the run early, with a checkpoint; 0: it is complete
};

// Where else than on the CPU a graph may run: made by a file that compiled it for that device (examples/program/cuda.hpp).
using device_binding = std::function<std::unique_ptr<any_step>(weft::detail::givens const&)>;

// Own: settings of the graph's own stages, given to the constructor after the reward.
template <class Graph, class Objective = rl::policy_objective, class... Own> class trainer {
  template <class P> static constexpr bool has = weft::detail::has_port<P, Graph>();
  static constexpr bool supervised = has<rl::tokens<rl::training>> && !has<rl::scores<rl::training>>,
                        pairs = std::is_same_v<typename Objective::unit, objective::per_pair>,
                        labels = std::is_same_v<typename Objective::reads, objective::scores>, has_advantages = has<rl::advantages>;
  static constexpr bool has_critic = has<rl::weights<rl::critic>>, has_reference = has<rl::weights<rl::reference>>,
                        has_teacher = has<rl::weights<rl::teacher>>, has_tasks = has<rl::task>;

 public:
  std::function<void(i64 step, io::metrics const&)> after_step;  // called when a step is done and its numbers are on disk

  explicit trainer(options o, reward_function reward = {}, Own const&... own)
      : run_(std::move(o), {supervised, pairs, has_critic, has_reference, has_teacher, labels, has_advantages, has_tasks},
             std::move(reward))
      , own_(own...) {
    check_graph();
    check_memory();
  }
  // Before anything else: the graph runs there, and reals are bf16.
  void run_on(device_binding device) {
    device_ = std::move(device);
    check_memory();
  }

  // What a step will do, and the bytes of everything, without taking them.
  std::string plan(plan_form form = plan_form::text) {
    auto const sized = bind_dry(run_.asked());
    return sized->plan(form) + (form == plan_form::text ? run_.batch_arithmetic() + memory_text(sized->memory()) : "");
  }
  // What each knob costs: the bytes that the plan would have with it, and the predicted seconds of a step.
  std::string explain() {
    kernels::cpu_context on{&run_.pool()};
    return explanation(run_.asked(), run_.actor().config(), supervised, has_critic, has_reference, product_rate(on), [&](options const& o) {
      double bytes = 0;
      for (auto const& map : bind_dry(o)->memory()) bytes += double(map.arena + map.state) * double(map.count);
      return bytes;
    });
  }
  void fact(char const* name, std::string value) { run_.fact(name, std::move(value)); }    // for run.json; before train()
  void record(char const* name, std::string text) { run_.record(name, std::move(text)); }  // a file of the run's folder; before train()
  io::path out() const { return run_.out(); }
  any_step& graphs() { return *graphs_; }  // after train()

  result train() {
    auto const& t = run_.asked().trainer;
    auto const start = std::chrono::steady_clock::now();
    auto const elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    run_.open();
    graphs_ = device_ ? bind_all(run_.asked(), device_) : bind_all(run_.asked(), [&](weft::detail::givens const& all) {
      return make_step_from<Graph, rl::validate>(cpu{{&run_.pool()}}, all);
    });
    auto const& p = graphs_->instance().program_at(0);
    load();
    run_.watch(p, graphs_->memory());
    if (!run_.resumed() && (t.val_before_train || t.val_only)) {  // step 0 of the metrics
      run_.first_accuracy = validate();
      run_.write_metrics();
    }
    while (run_.done() < run_.steps() && !t.val_only && !io::asked_to_stop()) {
      try {
        step();
      } catch (left_early const&) {
        save(true);
        run_.finish_folder();
        return stopped(elapsed());
      }
      bool const last = run_.done() == run_.steps();
      if (run_.due(t.test_freq) || last) run_.last_accuracy = validate();
      run_.write_metrics();
      run_.stop_if_stuck();
      if (after_step) after_step(run_.done(), run_.metrics());
      if (run_.due(t.save_freq) || last || io::asked_to_stop()) {
        save();
        run_.finish_folder();
      }
    }
    if (run_.done() < run_.steps() && io::asked_to_stop()) return stopped(elapsed());
    if (run_.last_accuracy < 0) run_.last_accuracy = run_.done() > 0 ? validate() : run_.first_accuracy;
    if (t.val_only) run_.finish_folder();
    if (!t.val_only) save_model(out() / "model", run_.actor(), weights_now<rl::actor>().data());
    if constexpr (has_critic)
      if (!t.val_only) save_model(out() / "critic", *run_.critic(), weights_now<rl::critic>().data());
    return {run_.first_accuracy, run_.last_accuracy, elapsed(), run_.done()};
  }

 private:
  run run_;
  std::tuple<Own...> own_;
  device_binding device_;             // null: the CPU
  std::unique_ptr<any_step> graphs_;  // 0: the recipe, 1: validation

  result stopped(double seconds) { return {run_.first_accuracy, run_.last_accuracy, seconds, run_.done(), io::asked_to_stop()}; }

  bool in_place() { return graphs_->real_bytes() == sizeof(f32); }  // state is f32 that the host sees
  // What options ask for and the graph does not have would be left out in silence.
  void check_graph() const {
    auto const& o = run_.asked();
    auto const need = [](bool there, bool asked, char const* what, char const* graph) {
      if (asked && !there) io::refuse("{}: the graph of this trainer has none of it; take {}", what, graph);
    };
    auto const& estimator = o.algorithm.adv_estimator;
    need(has_advantages && has_reference, o.actor.use_kl_loss, "actor.use_kl_loss", "one with advantages and a reference");
    need(has_reference && has<rl::kl_coefficient>, o.algorithm.use_kl_in_reward, "algorithm.use_kl_in_reward",
         "one with a reference and token rewards");
    need(has<rl::correction_all>, wants_correction(o), "algorithm.rollout_correction", "rl::grpo_corrected");
    need(has<rl::group_drops>, o.algorithm.filter_groups.enable, "algorithm.filter_groups.enable", "one of group advantages");
    if constexpr (has<rl::group_drops>) {
      need(has<rl::batch_moments>, estimator == "gpg" || estimator.starts_with("reinforce_plus_plus"), "advantages of the whole batch",
           "rl::reinforce_plus_plus");
      need(has<rl::scores<rl::greedy>>, estimator == "remax", "a greedy baseline", "rl::remax");
    }
    if constexpr (!requires { Objective::names; })
      need(false, o.actor.loss_mode != "vanilla", "actor.policy_loss.loss_mode", "rl::policy_losses as its objective");
  }
  template <class P> auto view() { return graphs_->template view_of<P>(); }
  template <class P> auto* data_if() {  // null where the graph has no such port
    if constexpr (has<P>) return view<P>().data;
    else return static_cast<typename P::element*>(nullptr);
  }

  std::unique_ptr<any_step> bind_dry(options const& o) {
    return bind_all(o, [&](weft::detail::givens const& all) {
      return device_ ? make_step_from<Graph, rl::validate>(dry_in<bf16>{}, all) : make_step_from<Graph, rl::validate>(dry{}, all);
    });
  }
  void check_memory() {
    auto const sized = bind_dry(run_.asked());
    size_t bytes = 0;
    std::vector<buffer_line> parts;
    for (auto const& map : sized->memory()) {  // regions are those of all graphs together
      bytes += (map.arena + map.state) * map.count;
      parts.insert(parts.end(), map.buffers.begin(), map.buffers.end());
    }
    run_.check_memory(bytes, std::move(parts));
  }
  template <class Make> std::unique_ptr<any_step> bind_all(options const& o, Make const& make) {
    batch_sizes const z = sizes_of(o);
    auto const& c = run_.actor().config();
    i64 const val_rows = std::max<i64>(1, run_.validation_rows()),
              val_batch = o.data.val_batch_size > 0 ? std::min(o.data.val_batch_size, val_rows) : val_rows;
    i64 const samples = o.actor.use_dynamic_bsz ? 0 : o.actor.ppo_micro_batch_size_per_gpu,
              critic_samples = o.actor.use_dynamic_bsz ? 0 : o.critic.ppo_micro_batch_size_per_gpu;
    auto const with = [&]<class... Given>(Given const&... g) {
      static_assert(weft::detail::demand_bind<weft::detail::list<Given..., computes_in>, Graph, rl::validate>);
      weft::detail::given const all[] = {{weft::detail::given_as<Given>::tag, &g}...};
      return make(weft::detail::givens{all, sizeof...(Given)});
    };
    return with(rl::prompt<rl::training>{{size_t(z.prompts)}}, rl::group<rl::training>{{size_t(z.group)}},
                rl::prompt_position<rl::training>{{size_t(z.prompt_room)}}, rl::position<rl::training>{{size_t(z.room)}},
                rl::prompt<rl::greedy>{{size_t(z.prompts)}}, rl::group<rl::greedy>{{1}},
                rl::prompt_position<rl::greedy>{{size_t(z.prompt_room)}}, rl::position<rl::greedy>{{size_t(z.room)}},
                rl::prompt<rl::validation>{{size_t(val_batch)}}, rl::group<rl::validation>{{size_t(o.rollout.val_kwargs.n)}},
                rl::prompt_position<rl::validation>{{size_t(z.prompt_room)}}, rl::position<rl::validation>{{size_t(z.room)}},
                rl::rope_position{{size_t(z.prompt_room + z.room)}}, rl::lane{{1}},
                rl::epoch<rl::actor>{{size_t(supervised ? 1 : o.actor.ppo_epochs)}}, rl::epoch<rl::critic>{{size_t(o.critic.ppo_epochs)}},
                rl::minibatch<rl::actor>{{size_t(z.actor_minibatches)}}, rl::minibatch<rl::critic>{{size_t(z.critic_minibatches)}},
                rl::config<rl::actor>{c}, rl::config<rl::critic>{has_critic ? run_.critic()->config() : c},
                rl::config<rl::reference>{has_reference ? run_.reference()->config() : c},
                rl::config<rl::teacher>{has_teacher ? run_.teacher()->config() : c}, generation_of<rl::training>(o, c, z.prompts, z.group),
                generation_of<rl::greedy>(o, c, z.prompts, 1), run_.decoding<rl::greedy>(), run_.training_reward<rl::greedy>(),
                generation_of<rl::validation>(o, c, val_batch, o.rollout.val_kwargs.n), run_.decoding<rl::training>(),
                run_.decoding<rl::validation>(), run_.training_reward<rl::training>(), run_.validation_reward(), baseline_of(o),
                objective::gae_settings{o.algorithm.gamma, o.algorithm.lam},
                rl::kl_in_reward{detail::named(objective::kl_estimator_names, "algorithm.kl_penalty", o.algorithm.kl_penalty).estimator},
                budget_of<rl::actor>(o.actor.ppo_max_token_len_per_gpu, samples, o.actor.enable_gradient_checkpointing,
                                     pairs       ? 2
                                     : has_tasks ? i32(z.group)
                                                 : 1),
                budget_of<rl::critic>(o.critic.ppo_max_token_len_per_gpu, critic_samples, o.critic.enable_gradient_checkpointing),
                budget_of<rl::scoring>(o.actor.ppo_max_token_len_per_gpu, 0, true), rl::optimizer<rl::actor>{optimizer_of(o.actor.optim)},
                rl::optimizer<rl::critic>{optimizer_of(o.critic.optim)}, loss(), value_objective_of(o), hybrid_of(o, z),
                has<rl::correction_all> ? correction_of(o) : objective::rollout_correction{},
                has_tasks ? pairs_objective_of(o) : rl::pairs_objective{}, rl::demonstrations_objective{}, std::get<Own>(own_)...);
  }

  Objective loss() const {
    auto const& o = run_.asked();
    if constexpr (!has_advantages) return plain_objective_of<Objective>(o);
    else return policy_objective_of<Objective>(o);
  }

  // ---- models and their state -------------------------------------------------------------------------------
  template <class M> void load_model(model_files& files) {
    auto const w = view<rl::weights<M>>();
    auto const rope = view<rl::rope_table<M>>();
    std::vector<f32> angles(rope.count());
    model::fill_rope_table<f32>(files.config(), rope.template extent<rl::rope_position>(), angles.data());
    put(rope.data, angles);
    if (in_place()) files.load(u64(run_.asked().seed), w.data);
    else {
      std::vector<f32> all(w.count());
      files.load(u64(run_.asked().seed), all.data());
      if constexpr (has<rl::masters<M>>)
        if (auto const masters = view<rl::masters<M>>(); masters.count()) put(masters.data, all);
      std::vector<bf16> rounded(all.size());
      for (size_t i = 0; i < all.size(); ++i) rounded[i] = io::to_bf16(all[i]);
      put(w.data, rounded);
    }
    if constexpr (has<rl::moments<M>>) {
      auto const m = view<rl::moments<M>>();
      put(m.data, std::vector<std::uint8_t>(m.count()));
      put(view<rl::updates_done<M>>().data, std::vector<i32>(1));
    }
  }
  template <class T> void put(void* to, std::vector<T> const& from) { graphs_->write(to, from.data(), from.size() * sizeof(T)); }
  template <class M> std::vector<f32> weights_now() {
    auto const w = view<rl::weights<M>>();
    std::vector<f32> all(w.count());
    if (in_place()) graphs_->read(all.data(), w.data, all.size() * sizeof(f32));
    else if (auto const masters = view<rl::masters<M>>(); masters.count())
      graphs_->read(all.data(), masters.data, all.size() * sizeof(f32));
    else {
      std::vector<bf16> narrow(all.size());
      graphs_->read(narrow.data(), w.data, narrow.size() * sizeof(bf16));
      for (size_t i = 0; i < all.size(); ++i) all[i] = io::to_float(narrow[i]);
    }
    return all;
  }
  void load() {
    load_model<rl::actor>(run_.actor());
    if constexpr (has_critic) load_model<rl::critic>(*run_.critic());
    if constexpr (has_reference) load_model<rl::reference>(*run_.reference());
    if constexpr (has_teacher) load_model<rl::teacher>(*run_.teacher());
    auto const parts = state();
    std::vector<std::vector<std::byte>> copies;
    std::vector<io::place> places;
    for (auto const& part : parts) {
      if (!in_place()) copies.emplace_back(part.bytes);
      places.push_back({part.name, in_place() ? part.data : copies.back().data(), part.bytes});
    }
    run_.resume(places);
    if (!in_place() && run_.resumed())
      for (size_t i = 0; i < parts.size(); ++i) put(parts[i].data, copies[i]);
  }
  void save(bool early = false) {
    std::vector<std::vector<std::byte>> copies;
    std::vector<io::blob> blobs;
    for (auto const& part : state()) {
      if (!in_place()) graphs_->read(copies.emplace_back(part.bytes).data(), part.data, part.bytes);
      blobs.push_back({part.name, in_place() ? part.data : copies.back().data(), part.bytes});
    }
    early ? run_.save_early(blobs) : run_.save(blobs);
  }
  struct state_part {
    std::string name;
    void* data;
    size_t bytes;
  };
  std::vector<state_part> state() {  // what a checkpoint holds, apart from a few numbers
    std::vector<state_part> all;
    auto const add = [&]<class M>(M*, std::string const& name) {
      size_t const real = graphs_->real_bytes();
      auto const take = [&](char const* what, auto const& v, size_t each) {
        if (v.count()) all.push_back({name + what, v.data, v.count() * each});
      };
      take(".weights", view<rl::weights<M>>(), real);
      take(".masters", view<rl::masters<M>>(), sizeof(f32));
      take(".moments", view<rl::moments<M>>(), 1);
      take(".updates", view<rl::updates_done<M>>(), sizeof(i32));
    };
    add((rl::actor*)nullptr, "actor");
    if constexpr (has_critic) add((rl::critic*)nullptr, "critic");
    return all;
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
  void feed_response(size_t i, std::vector<i32> const& ids) {  // of sample i; a score is read after the last token: one more, any id
    auto const t = view<rl::tokens<rl::training>>();
    size_t const room = t.template extent<rl::position<rl::training>>();
    std::fill_n(t.data + i * room, room, 0);
    std::copy_n(ids.data(), ids.size(), t.data + i * room);
    view<rl::lengths<rl::training>>().flat(i) = i32(ids.size()) + labels;
    view<rl::included>().flat(i) = 1;
  }
  void feed_responses(size_t i, io::data_row const& row) {
    feed_response(pairs ? 2 * i : i, row.response);
    if constexpr (pairs) feed_response(2 * i + 1, row.rejected);
  }
  template <class M> double feed_update(i64 passes, bool shuffled, optimizer_options const& o) {
    double const lr = optim::learning_rate(schedule_of(o, run_.steps()), run_.done());
    view<rl::passes<M>>()() = i32(passes);
    view<rl::learning_rate<M>>()() = f32(lr);
    auto const seeds = view<rl::epoch_seed<M>>();
    for (size_t e = 0; e < seeds.count(); ++e)
      seeds(e) = shuffled ? 1 + u32((u64(run_.asked().seed) * 1000003 + u64(run_.done())) * 64 + e) : 0;
    return lr;
  }
  template <class M, class O> update_columns columns(char const* who, O const& loss, i64 passes, double lr) {
    auto const norms = view<rl::gradient_norms<M>>();
    return {who, view<rl::loss_sums<M>>().data, norms.data, passes ? norms.count() : 0, lr, names_of(loss)};
  }
  // A checksum of all that decides the samples of a step, apart from their draw numbers.
  u32 source_of_samples() {
    if constexpr (supervised) return 0;
    else {
      auto const d = run_.decoding<rl::training>();
      u32 sum = io::crc32c(&d.seed, sizeof d.seed);
      auto const add = [&](auto const& v) { sum = io::crc32c(v.data, v.count() * sizeof *v.data, sum); };
      auto const w = view<rl::weights<rl::actor>>();
      u64 const weights = graphs_->checksum(w.data, w.count() * graphs_->real_bytes());
      sum = io::crc32c(&weights, sizeof weights, sum);
      add(view<rl::prompts<rl::training>>()), add(view<rl::prompt_lengths<rl::training>>());
      add(view<rl::sampling_of<rl::training>>());
      i64 const rules[] = {d.sampled_ids, run_.sizes().room, i64(run_.asked().rollout.kv_cache_dtype == "fp8")};
      sum = io::crc32c(rules, sizeof rules, sum);
      return io::crc32c(d.stop.ids, size_t(d.stop.id_count) * sizeof *d.stop.ids, sum);
    }
  }
  void feed_prompts() {
    auto const& o = run_.asked();
    for (size_t i = 0; i < size_t(run_.sizes().prompts); ++i) {
      auto const next = run_.row_of(i);
      auto how = training_sampling(o);
      if constexpr (has_tasks)
        if (view<rl::task>()(i) = run_.task_of(i); view<rl::task>()(i) != rl::rollouts) how = {};
      feed_prompt<rl::training>(i, &next.row, next.index, next.draw, how);
      if constexpr (supervised) feed_responses(i, next.row);
    }
  }
  // Dynamic sampling: the graph with no pass over the samples, until enough groups have scores that differ.
  void draw_groups() {
    auto const& o = run_.asked();
    do {
      run_.take_rows(), feed_prompts();
      feed_update<rl::actor>(0, false, o.actor.optim);
      run_.begin_step(source_of_samples());
      graphs_->step(0);
    } while (!run_.collect({data_if<rl::tokens<rl::training>>(), data_if<rl::lengths<rl::training>>(),
                            data_if<rl::finishes<rl::training>>(), data_if<rl::log_probs<rl::training>>(),
                            data_if<rl::log_kept<rl::training>>(), data_if<rl::entropies<rl::training>>(),
                            data_if<rl::scores<rl::training>>(), size_t(run_.sizes().group), size_t(run_.sizes().room)}));
    run_.take_kept();
  }
  void step() {
    auto const start = std::chrono::steady_clock::now();
    auto const& o = run_.asked();
    if constexpr (has<rl::kl_coefficient>) view<rl::kl_coefficient>()() = run_.kl_coefficient();
    graphs_->time_into(run_.seconds());
    double const first = weft::detail::now();
    if constexpr (has<rl::group_drops>)
      if (run_.filters()) draw_groups();
    double const drawing = weft::detail::now() - first;
    if (!run_.filters()) run_.take_rows();
    feed_prompts();
    i64 const passes = run_.warming() ? 0 : supervised ? 1 : o.actor.ppo_epochs;
    double const lr = feed_update<rl::actor>(passes, o.actor.shuffle && !pairs, o.actor.optim);
    [[maybe_unused]] double critic_lr = 0;
    if constexpr (has_critic) { critic_lr = feed_update<rl::critic>(o.critic.ppo_epochs, o.critic.shuffle, o.critic.optim); }
    run_.begin_step(source_of_samples());
    graphs_->watch({&run_, &run::stage_ended});
    double const began = weft::detail::now();
    graphs_->step(0);
    double const ended = weft::detail::now();
    graphs_->time_into(nullptr), graphs_->watch({});
    run_.end_step();
    if constexpr (!supervised)
      run_.add(step_columns{{data_if<rl::prompt_lengths<rl::training>>(), data_if<rl::lengths<rl::training>>(),
                             data_if<rl::finishes<rl::training>>(), data_if<rl::scores<rl::training>>(),
                             size_t(run_.sizes().rollouts * run_.sizes().group), size_t(run_.sizes().group), size_t(run_.sizes().room)},
                            data_if<rl::tokens<rl::training>>(),
                            data_if<rl::advantages>(),
                            data_if<rl::returns>(),
                            data_if<rl::values>(),
                            data_if<rl::kl_means>(),
                            data_if<rl::group_drops>(),
                            data_if<rl::rollout_sums<rl::training>>()});
    run_.add(columns<rl::actor>("actor", loss(), passes, lr));
    if constexpr (has<rl::correction_all>) run_.add(view<rl::correction_all>()());
    if constexpr (has_tasks) {
      size_t const updates = passes ? view<rl::gradient_norms<rl::actor>>().count() : 0;
      run_.add_task(view<rl::task_sums<1>>().data, names_of(rl::demonstrations_objective{}), updates);
      run_.add_task(view<rl::task_sums<2>>().data, names_of(rl::pairs_objective{}), updates);
    }
    if constexpr (has_critic) run_.add(columns<rl::critic>("critic", rl::value_objective{}, o.critic.ppo_epochs, critic_lr));
    run_.add_times(began - (run_.filters() ? drawing : 0), ended);  // rounds of dynamic sampling too
    run_.finish_metrics(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  // ---- validation -------------------------------------------------------------------------------------------
  double validate() {
    size_t const rows = size_t(run_.validation_rows()),
                 at_once = view<rl::prompts<rl::validation>>().template extent<rl::prompt<rl::validation>>();
    size_t const each = size_t(run_.asked().rollout.val_kwargs.n);
    for (size_t first = 0; first < rows; first += at_once) {
      auto const taken = run_.validation_rows(first, at_once);
      for (size_t i = 0; i < at_once; ++i) {
        size_t const row = first + i;
        feed_prompt<rl::validation>(i, row < rows ? taken[i].get() : nullptr, i64(row), 0x80000000u | u32(row),
                                    validation_sampling(run_.asked()));
      }
      graphs_->step(1);
      auto const scores = view<rl::scores<rl::validation>>();
      for (size_t s = 0; s < scores.count() && first + s / each < rows; ++s) run_.add_validation(first + s / each, scores.flat(s));
    }
    return run_.accuracy();
  }
};
}  // namespace weft::train
