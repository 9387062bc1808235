// golden_rl FILE.json: runs every case of a file of golden values (see tests/data/README.md) in double and in float. Prints one line
// for each case that fails and for each kind that is skipped, then `N passed, N failed, N skipped`; exits with 0 if none failed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <weft/io/json.hpp>
#include <weft/kernels/head.hpp>
#include <weft/objective/objective.hpp>
#include "objective/batch.hpp"

namespace {
using namespace weft;
namespace ob = weft::objective;
using io::json;

template <class T> struct matrix {
  size_t rows = 0, width = 0;
  std::vector<T> data;
};

// One case in the numbers T: reads inputs and parameters, compares outputs.
template <class T> struct golden {
  json const& c;
  std::string const& where;
  std::string wrong;  // the first output that differs
  std::vector<std::string> compared;

  json const& inputs() const { return c.at("inputs", where); }
  double parameter(char const* key, double otherwise) const {
    json const& p = c.at("params", where);
    return io::number_or(p, key, otherwise, -1e300, 1e300, where);
  }
  bool flag(char const* key, bool otherwise) const { return io::bool_or(c.at("params", where), key, otherwise, where); }

  static void flatten(json const& from, std::vector<T>& to, std::string const& where) {
    if (auto* items = from.as_array()) {
      for (auto& item : *items) flatten(item, to, where);
    } else if (from.is_number()) {
      to.push_back(T(from.to_double()));
    } else if (auto* b = from.as_bool()) {
      to.push_back(T(*b));
    } else {
      io::refuse("{}: {} is not a number", where, io::show(from.dump(), 60));
    }
  }
  bool has(char const* key) const { return inputs().find(key) != nullptr; }
  matrix<T> input(char const* key) const {  // [rows, width]; a list of numbers is [rows, 1]
    json const& from = inputs().at(key, where);
    auto* rows = from.as_array();
    if (!rows || rows->empty()) io::refuse("{}: {} is not a list of numbers", where, key);
    matrix<T> m;
    flatten(from, m.data, where);
    m.rows = rows->size();
    m.width = m.data.size() / m.rows;
    if (m.rows * m.width != m.data.size() || m.width == 0) io::refuse("{}: the rows of {} differ in length", where, key);
    return m;
  }
  matrix<T> input(char const* key, matrix<T> const& like) const {
    matrix<T> m = input(key);
    if (m.rows != like.rows || m.width != like.width)
      io::refuse("{}: {} is {} x {}, expected {} x {}", where, key, m.rows, m.width, like.rows, like.width);
    return m;
  }
  std::vector<i32> mask(char const* key, matrix<T> const& like) const {
    auto const m = input(key, like);
    return {m.data.begin(), m.data.end()};
  }

  void expect(char const* key, std::vector<T> const& ours, double tolerance, std::vector<i32> const* where_mask = nullptr) {
    json const* theirs = c.at("outputs", where).find(key);
    compared.push_back(key);
    if (!theirs || !wrong.empty()) return;
    std::vector<double> want;
    golden<double>::flatten(*theirs, want, where);
    if (want.size() != ours.size()) {
      wrong = fmt::format("{} has {} numbers, expected {}", key, ours.size(), want.size());
      return;
    }
    if (sizeof(T) == 4) tolerance = 1e-5;
    for (size_t i = 0; i < want.size(); ++i) {
      if (where_mask && (*where_mask)[i] == 0) continue;
      double const difference = std::abs(double(ours[i]) - want[i]), allowed = tolerance * std::max(1.0, std::abs(want[i]));
      if (!(difference <= allowed)) {
        wrong = fmt::format("{}[{}] is {}, expected {} (difference {:.3g}, allowed {:.3g}, {})", key, i, double(ours[i]), want[i],
                            difference, allowed, sizeof(T) == 4 ? "float" : "double");
        return;
      }
    }
  }
  void expect_nothing_else() {
    if (auto* outputs = c.at("outputs", where).as_object(); outputs && wrong.empty())
      for (auto const& [key, value] : *outputs)
        if (std::find(compared.begin(), compared.end(), key) == compared.end()) wrong = fmt::format("{} is compared with nothing", key);
  }
  void expect(char const* key, double ours, double tolerance) { expect(key, std::vector<T>{T(ours)}, tolerance); }
};

constexpr double exact = 1e-9, epsilon_in_denominator = 1e-7;  // verl adds 1e-8 to some denominators; weft divides by the integer

// ---- advantages

template <class T> std::vector<ob::moments> row_moments(matrix<T> const& m, std::vector<i32> const& mask) {
  std::vector<ob::moments> rows;
  for (size_t r = 0; r < m.rows; ++r) rows.push_back(ob::moments_of(m.width, m.data.data() + r * m.width, mask.data() + r * m.width));
  return rows;
}
template <class T> void whiten(matrix<T>& m, std::vector<i32> const& mask) {
  auto const rows = row_moments(m, mask);
  auto const all = ob::merged(rows.size(), rows.data());
  for (size_t r = 0; r < m.rows; ++r) ob::whiten(m.width, all, mask.data() + r * m.width, m.data.data() + r * m.width);
}

template <class T> void gae(golden<T>& g) {
  auto const reward = g.input("token_level_rewards"), value = g.input("values", reward);
  auto const mask = g.mask("response_mask", reward);
  auto advantage = reward, target = reward;
  for (size_t r = 0; r < reward.rows; ++r) {
    size_t const i = r * reward.width;
    ob::gae({g.parameter("gamma", 1), g.parameter("lam", 1)}, reward.width, &reward.data[i], &value.data[i], &mask[i], &advantage.data[i],
            &target.data[i]);
  }
  bool const whitened = g.flag("whiten", true);
  if (whitened) whiten(advantage, mask);
  g.expect("advantages", advantage.data, whitened ? epsilon_in_denominator : exact, &mask);
  g.expect("returns", target.data, exact, &mask);
}

template <class T> void reinforce_plus_plus(golden<T>& g) {
  auto const reward = g.input("token_level_rewards");
  auto const mask = g.mask("response_mask", reward);
  auto target = reward;
  for (size_t i = 0; i < reward.data.size(); i += reward.width)
    ob::returns(g.parameter("gamma", 1), reward.width, &reward.data[i], &mask[i], &target.data[i]);
  auto advantage = target;
  whiten(advantage, mask);
  g.expect("advantages", advantage.data, epsilon_in_denominator, &mask);
  g.expect("returns", target.data, exact, &mask);
}

template <class T> void remax(golden<T>& g) {
  auto const reward = g.input("token_level_rewards"), baseline = g.input("reward_baselines");
  auto const mask = g.mask("response_mask", reward);
  auto advantage = reward, target = reward;
  for (size_t r = 0; r < reward.rows; ++r) {
    size_t const i = r * reward.width;
    ob::remax(reward.width, &reward.data[i], baseline.data.at(r), &mask[i], &advantage.data[i], &target.data[i]);
  }
  g.expect("advantages", advantage.data, exact, &mask);
  g.expect("returns", target.data, exact, &mask);
}

// Estimators of whole answers: of_group(scores, lengths, advantages) is called once for each group.
template <class T, class F> void grouped(golden<T>& g, bool whitened, F const& of_group) {
  auto const reward = g.input("token_level_rewards"), ids = g.input("group");
  auto const mask = g.mask("response_mask", reward);
  std::map<T, std::vector<size_t>> groups;
  for (size_t r = 0; r < reward.rows; ++r) groups[ids.data.at(r)].push_back(r);
  matrix<T> advantage = reward;
  for (auto& [id, members] : groups) {
    std::vector<T> score, out(members.size());
    std::vector<i32> length;
    for (size_t r : members) {
      auto const row = reward.data.begin() + std::ptrdiff_t(r * reward.width);
      score.push_back(std::accumulate(row, row + std::ptrdiff_t(reward.width), T(0)));
      length.push_back(std::accumulate(&mask[r * reward.width], &mask[r * reward.width] + reward.width, 0));
    }
    of_group(score, length, out);
    for (size_t j = 0; j < members.size(); ++j)
      ob::broadcast(reward.width, out[j], &mask[members[j] * reward.width], &advantage.data[members[j] * reward.width]);
  }
  if (whitened) whiten(advantage, mask);
  g.expect("advantages", advantage.data, whitened ? epsilon_in_denominator : exact, &mask);
}
template <class T> ob::group_settings group_settings(golden<T> const& g) {
  return {g.parameter("epsilon", 1e-6), g.flag("norm_by_std", true)};
}

template <class T> void grpo(golden<T>& g) {
  grouped(g, false, [&](auto& s, auto&, auto& out) { ob::grpo(group_settings(g), s.size(), s.data(), nullptr, out.data()); });
}
template <class T> void grpo_passk(golden<T>& g) {
  grouped(g, false, [&](auto& s, auto&, auto& out) { ob::grpo_passk(group_settings(g), s.size(), s.data(), nullptr, out.data()); });
}
template <class T> void rloo(golden<T>& g) {
  grouped(g, false, [&](auto& s, auto&, auto& out) { ob::rloo(s.size(), s.data(), nullptr, out.data()); });
}
template <class T> void opo(golden<T>& g) {
  grouped(g, false, [&](auto& s, auto& length, auto& out) { ob::opo(s.size(), s.data(), length.data(), nullptr, out.data()); });
}
template <class T> void reinforce_plus_plus_baseline(golden<T>& g) {
  grouped(g, true, [&](auto& s, auto&, auto& out) { ob::centred(s.size(), s.data(), nullptr, out.data()); });
}
template <class T> void gpg(golden<T>& g) {
  auto const reward = g.input("token_level_rewards");
  double scored = 0;
  for (size_t i = 0; i < reward.data.size(); i += reward.width)
    scored += std::accumulate(&reward.data[i], &reward.data[i] + reward.width, T(0)) != 0;
  double const alpha = double(reward.rows) / std::max(scored, 1.0);
  grouped(g, false, [&](auto& s, auto&, auto& out) { ob::gpg(alpha, g.parameter("f_norm", 1), s.size(), s.data(), nullptr, out.data()); });
}

// ---- losses

// The width of the padded batch is what verl divides by in seq-mean-token-sum-norm where no factor is given, and that revision did
// not divide by the number of sequences: the factor that gives the same is width / sequences.
template <class T, class Mask> void set_aggregation(golden<T> const& g, std::string const& name, size_t width, ob::counts<Mask> const& n,
                                                    ob::aggregation& mode, double& factor) {
  for (auto const& known : ob::aggregation_names)
    if (name == known.name) mode = known.mode;
  factor = g.parameter("loss_scale_factor", double(width)) / double(n.sequences);
}
template <class T> std::string aggregation_of(golden<T> const& g) {
  return io::string_or(g.c.at("params", g.where), "loss_agg", "token-mean", g.where);
}

template <class Term, class T, class Set> void policy_loss(golden<T>& g, Set const& set) {
  test::batch<T> b;
  auto const lp = g.input("log_prob");
  b.rows = lp.rows, b.width = lp.width, b.log_prob = lp.data;
  b.mask = g.mask("response_mask", lp);
  b.old_log_prob = g.input("old_log_prob", lp).data;
  b.advantage = g.input("advantages", lp).data;
  if (g.has("rollout_is_weights")) b.rollout_weight = g.input("rollout_is_weights", lp).data;
  auto const n = test::count<ob::response>(b.rows, b.width, b.mask);
  ob::sum<Term> o;
  set_aggregation(g, aggregation_of(g), b.width, n, o.loss_agg_mode, o.loss_scale_factor);
  set(o.template of<Term>());
  auto const out = test::evaluate(o, b, n, 0, b.rows);
  bool const by_length = Term::over == ob::aggregation::seq_mean_token_mean || Term::over == ob::aggregation::sequence_mean ||
                         o.loss_agg_mode == ob::aggregation::seq_mean_token_mean;
  double const tolerance = by_length ? epsilon_in_denominator : exact;
  g.expect("loss", out.loss, tolerance);
  g.expect("loss", out.metrics[0], tolerance);
  g.expect("grad_log_prob", out.log_prob, tolerance);
  auto const names = o.metric_names();
  for (size_t k = 2; k < names.size(); ++k)
    g.expect(names[k].name + sizeof("actor/") - 1, out.metrics[k] / double(o.denominator(names[k], n)), epsilon_in_denominator);
}
template <class T> auto clip_ratios(golden<T> const& g) {
  return [&g](auto& term) {
    term.clip_ratio_low = g.parameter("clip_ratio_low", 0.2);
    term.clip_ratio_high = g.parameter("clip_ratio_high", 0.2);
  };
}
template <class T> void ppo_clip(golden<T>& g) {
  policy_loss<ob::ppo_clip>(g, [&](auto& term) { clip_ratios(g)(term), term.clip_ratio_c = g.parameter("clip_ratio_c", 3); });
}
template <class T> void gspo(golden<T>& g) { policy_loss<ob::gspo>(g, clip_ratios(g)); }
template <class T> void geo_mean(golden<T>& g) { policy_loss<ob::geo_mean>(g, clip_ratios(g)); }
template <class T> void cispo(golden<T>& g) { policy_loss<ob::cispo>(g, clip_ratios(g)); }
template <class T> void sapo(golden<T>& g) {
  policy_loss<ob::sapo>(g, [&](auto& term) { term.tau_pos = g.parameter("tau_pos", 1), term.tau_neg = g.parameter("tau_neg", 1.05); });
  g.expect("pg_clipfrac", 0.0, exact);  // nothing is clipped
}
template <class T> void reinforce(golden<T>& g) {
  policy_loss<ob::reinforce>(g, [](auto&) {});
}

template <class T> void value_loss(golden<T>& g) {
  auto const value = g.input("vpreds"), old = g.input("values", value), target = g.input("returns", value);
  auto const mask = g.mask("response_mask", value);
  auto const n = test::count<ob::response>(value.rows, value.width, mask);
  ob::sum<ob::value_clip> o;
  set_aggregation(g, aggregation_of(g), value.width, n, o.loss_agg_mode, o.loss_scale_factor);
  o.of<ob::value_clip>().cliprange_value = g.parameter("cliprange_value", 0.5);
  double loss = 0;
  std::vector<T> gradient(value.data.size());
  auto const metrics = test::run<decltype(o), T>(
      o, value.width, mask, n, 0, value.rows,
      [&](size_t i) {
        return ob::prediction<T>{value.data[i], old.data[i], target.data[i]};
      },
      [&](size_t i, ob::value_loss<T> const& l) { loss += double(l.value), gradient[i] = l.prediction; });
  double const tolerance = o.loss_agg_mode == ob::aggregation::seq_mean_token_mean ? epsilon_in_denominator : exact;
  g.expect("loss", loss, tolerance);
  g.expect("grad_vpreds", gradient, tolerance);
  g.expect("clipfrac", metrics[2] / double(n.tokens), epsilon_in_denominator);
}

template <class T> void loss_aggregation(golden<T>& g) {
  auto const loss = g.input("loss");
  auto const mask = g.mask("mask", loss);
  auto const n = test::count<ob::response>(loss.rows, loss.width, mask);
  ob::aggregation mode{};
  double factor = 1, value = 0;
  set_aggregation(g, io::string_or(g.c, "name", "", g.where), loss.width, n, mode, factor);
  for (size_t r = 0; r < loss.rows; ++r) {
    T const length = T(std::accumulate(&mask[r * loss.width], &mask[r * loss.width] + loss.width, 0));
    for (size_t i = r * loss.width; i < (r + 1) * loss.width; ++i)
      if (mask[i] != 0) value += double(ob::weight_of(mode, factor, n, length) * loss.data[i]);
  }
  g.expect("value", value, mode == ob::aggregation::seq_mean_token_mean ? epsilon_in_denominator : exact);
}

template <class T> void kl(golden<T>& g) {
  auto const lp = g.input("log_prob"), ref = g.input("ref_log_prob", lp);
  std::string const name = io::string_or(g.c, "name", "", g.where);
  for (auto const& known : ob::kl_estimator_names) {
    if (name != known.name) continue;
    std::vector<T> value, gradient;
    for (size_t i = 0; i < lp.data.size(); ++i) {
      auto const k = ob::kl_of(known.estimator, lp.data[i], lp.data[i], ref.data[i]);
      value.push_back(k.value), gradient.push_back(k.log_prob);
    }
    g.expect("kl", value, exact);
    g.expect("grad_log_prob", gradient, exact);
    return;
  }
}

template <class T> void kl_in_reward(golden<T>& g) {
  auto const score = g.input("token_level_scores"), old = g.input("old_log_prob", score), ref = g.input("ref_log_prob", score);
  auto reward = score;
  for (size_t i = 0; i < score.data.size(); ++i) {  // one token a row: its score lies on it
    i32 const counts = 1;
    ob::token_rewards(1, score.data[i], &counts, ob::kl_estimator::k1, g.parameter("kl_ratio", 0), &old.data[i], &ref.data[i],
                      &reward.data[i]);
  }
  g.expect("token_level_rewards", reward.data, exact);
}

template <class T> void kl_controller(golden<T>& g) {
  ob::kl_control control{true, g.parameter("init", 0.001), g.parameter("target", 0.1), g.parameter("horizon", 10000)};
  auto* steps = g.c.at("outputs", g.where).at("sequence", g.where).as_array();
  if (!steps) io::refuse("{}: sequence is not a list", g.where);
  double coefficient = control.kl_coef;
  g.compared.push_back("sequence");
  for (auto& step : *steps) {
    auto number = [&](char const* key) { return io::number_or(step, key, 0, -1e300, 1e300, g.where); };
    coefficient = ob::next_kl_coefficient(control, coefficient, number("current_kl"), number("n_steps"));
    if (std::abs(coefficient - number("coef")) > exact) g.wrong = fmt::format("coef is {}, expected {}", coefficient, number("coef"));
  }
}

template <class T> void dpo(golden<T>& g) {
  auto const chosen = g.input("policy_chosen"), rejected = g.input("policy_rejected", chosen);
  auto const ref_chosen = g.input("ref_chosen", chosen), ref_rejected = g.input("ref_rejected", chosen);
  ob::sum<ob::dpo> o;
  o.of<ob::dpo>().beta = g.parameter("beta", 0.1);
  o.of<ob::dpo>().label_smoothing = g.parameter("label_smoothing", 0);
  ob::counts<ob::completion> n;
  n.pairs = std::int64_t(chosen.rows);
  double loss = 0;
  std::vector<T> d_chosen, d_rejected;
  for (size_t i = 0; i < chosen.rows; ++i) {
    auto const l = o.evaluate(ob::pair<T>{chosen.data[i], rejected.data[i], ref_chosen.data[i], ref_rejected.data[i]}, {}, n);
    loss += double(l.value), d_chosen.push_back(l.chosen), d_rejected.push_back(l.rejected);
  }
  g.expect("loss", loss, exact);
  g.expect("grad_policy_chosen", d_chosen, exact);
  g.expect("grad_policy_rejected", d_rejected, exact);
}

template <class T> void entropy(golden<T>& g) {  // logits [rows, width, vocab]
  json const& logits = g.inputs().at("logits", g.where);
  std::vector<T> entropies;
  auto* rows = logits.as_array();
  if (!rows) io::refuse("{}: logits is not a list", g.where);
  for (auto& row : *rows)
    for (auto& token : row.as_array() ? *row.as_array() : json::array{}) {
      std::vector<T> z;
      golden<T>::flatten(token, z, g.where);
      entropies.push_back(kernels::softmax_row(z.size(), z.data(), T(1)).entropy);
    }
  g.expect("entropy", entropies, exact);
}

// ---- the table

template <class T> using run_case = void (*)(golden<T>&);
template <class T> std::map<std::string, run_case<T>> const& known_cases() {
  static std::map<std::string, run_case<T>> const known = [] {
    std::map<std::string, run_case<T>> k{
        {"advantage gae", gae},
        {"advantage grpo", grpo},
        {"advantage grpo_passk", grpo_passk},
        {"advantage rloo", rloo},
        {"advantage opo", opo},
        {"advantage gpg", gpg},
        {"advantage remax", remax},
        {"advantage reinforce_plus_plus", reinforce_plus_plus},
        {"advantage reinforce_plus_plus_baseline", reinforce_plus_plus_baseline},
        {"policy_loss ppo_clip", ppo_clip},
        {"policy_loss gspo", gspo},
        {"policy_loss geo_mean", geo_mean},
        {"policy_loss cispo", cispo},
        {"policy_loss sapo", sapo},
        {"policy_loss gpg", reinforce},
        {"value_loss clipped", value_loss},
        {"kl token_level_rewards", kl_in_reward},
        {"kl_controller adaptive", kl_controller},
        {"preference_loss dpo_sigmoid", dpo},
        {"entropy from_logits", entropy},
    };
    for (auto const& mode : ob::aggregation_names) k[std::string("loss_aggregation ") + mode.name] = loss_aggregation;
    for (auto const& e : ob::kl_estimator_names) k[std::string("kl ") + e.name] = kl;
    return k;
  }();
  return known;
}

// What differs, or nothing
template <class T> std::string failure(json const& c, std::string const& kind, std::string const& where) {
  golden<T> g{c, where, {}, {}};
  known_cases<T>().at(kind)(g);
  g.expect_nothing_else();
  return g.wrong;
}

int run(std::string const& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) io::refuse("{}: cannot be read; give a file of golden values", io::show(file));
  std::stringstream text;
  text << in.rdbuf();
  json const all = io::parse_json(text.str(), file);
  auto* cases = all.at("cases", file).as_array();
  if (!cases) io::refuse("{}: cases is not a list", file);
  int passed = 0, failed = 0, skipped = 0;
  std::map<std::string, int> unknown;
  for (size_t i = 0; i < cases->size(); ++i) {
    json const& c = (*cases)[i];
    std::string const where = fmt::format("{}: case {}", file, i);
    std::string const kind = io::string_or(c, "kind", "", where) + " " + io::string_or(c, "name", "", where);
    if (!known_cases<double>().contains(kind)) {
      ++skipped, ++unknown[kind];
      continue;
    }
    std::string wrong = failure<double>(c, kind, where);
    if (wrong.empty()) wrong = failure<float>(c, kind, where);
    ++(wrong.empty() ? passed : failed);
    if (!wrong.empty()) fmt::print("FAILED case {} ({}): {}\n", i, kind, wrong);
  }
  for (auto const& [kind, count] : unknown) fmt::print("skipped: {} ({} cases)\n", io::show(kind), count);
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 2) io::refuse("give one file: golden_rl FILE.json");
    return run(arguments[1]);
  } catch (io::input_error const& e) {
    fmt::print(stderr, "golden_rl: {}\n", e.what());
    return 2;
  }
}
