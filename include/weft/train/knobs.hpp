// knobs.hpp — the settings of a run by name: verl's dotted key=value, any unambiguous suffix of it, and a few aliases.
// Errors (io::input_error): unknown key (with the nearest name), ambiguous key (with its matches), wrong type or range, conflict.
#pragma once
#include <weft/train/names.hpp>

#include <algorithm>
#include <numeric>

namespace weft::train {

class knobs {
 public:
  explicit knobs(options& o) : all_(table(o).take()), options_(&o) {}  // o outlives this

  // key=value as it stands on a command line; origin is who says so
  void assign(std::string_view pair, std::string_view origin) {
    auto const cut = pair.find('=');
    if (cut == std::string_view::npos) io::refuse("{}: expected key=value", io::show(pair));
    set(pair.substr(0, cut), pair.substr(cut + 1), origin);
  }

  void set(std::string_view key, std::string_view value, std::string_view origin) {
    while (!key.empty() && key.front() == '+') key.remove_prefix(1);  // Hydra's "add a key"
    if (key == "enable_gradient_clipping") {
      bool on = true;
      knob(std::string(key), &on, "").parse(value);
      if (!on) set("actor_rollout_ref.actor.optim.clip_grad", "0", origin), set("critic.optim.clip_grad", "0", origin);
      return;
    }
    for (alias const& a : aliases)
      if (key == a.name) return set(a.means, value, origin);
    auto const match = [&](std::string_view name) { return name == key || ends_in(name, key); };
    std::vector<knob*> real;
    for (knob& k : all_) {
      if (k.name == key) {
        real.assign(1, &k);
        break;
      }
      if (match(k.name)) real.push_back(&k);
    }
    if (real.size() == 1) return real[0]->parse(value), void(real[0]->origin = origin);
    if (real.size() > 1) {
      std::string list;
      for (knob* k : real) list += fmt::format("{}{}", list.empty() ? "" : ", ", k->name);
      io::refuse("{} is ambiguous: {}", io::show(key), list);
    }
    for (foreign const& f : foreigners) {
      if (!(f.name.ends_with(".*") ? below(f.name.substr(0, f.name.size() - 2), key) : match(f.name))) continue;
      if (!f.only.empty() && !allowed(f.only, knob::trimmed(value)))
        io::refuse("{}={}: {}; only {} is accepted here", key, io::show(value), f.why, f.only);
      if (f.only.empty()) notes_.push_back(fmt::format("{}={}: no effect, {}", key, value, f.why));
      return;
    }
    io::refuse("unknown knob {}; the nearest is {}", io::show(key), nearest(key));
  }

  // After everything is set: fills what follows another knob, and refuses what does not fit together.
  void resolve() {
    resolve_recipe();
    for (knob& k : all_)
      if (!k.followed.empty() && k.origin.empty() && !at(k.followed).origin.empty()) k.take(at(k.followed));
    for (char const* name :
         {"actor_rollout_ref.rollout.top_k", "actor_rollout_ref.rollout.val_kwargs.top_k", "trainer.total_training_steps"})
      if (at(name).text() == "0") io::refuse("{}=0: expected -1 ({}) or at least 1", name, name[0] == 't' ? "from total_epochs" : "all");
    if (options_->rollout.val_kwargs.temperature > 0 && options_->rollout.val_kwargs.temperature < 1e-4)
      io::refuse("actor_rollout_ref.rollout.val_kwargs.temperature={}: expected 0 (greedy) or at least 0.0001",
                 options_->rollout.val_kwargs.temperature);
    bool const from_path = options_->trainer.resume_mode == "resume_path";
    if (from_path && options_->trainer.resume_from_path.empty())
      io::refuse("trainer.resume_mode=resume_path: set trainer.resume_from_path to a folder global_step_N");
  }

  knob const& operator[](std::string_view name) const { return const_cast<knobs*>(this)->at(name); }
  std::vector<knob> const& all() const& { return all_; }
  std::vector<knob> const& all() const&& = delete;
  std::vector<std::string> const& notes() const { return notes_; }  // keys without effect, a line each

  // What was set to something else than the default: "name=value (default; origin)"
  std::vector<std::string> overrides() const {
    std::vector<std::string> out;
    for (knob const& k : all_)
      if (!k.origin.empty() && k.text() != k.before)
        out.push_back(fmt::format("{}={} (default {}; {})", k.name, k.text(), k.before.empty() ? "none" : k.before, k.origin));
    return out;
  }

  // The whole configuration; reading it back gives the same.
  std::string yaml() const {
    std::string out;
    std::vector<std::string_view> open;
    for (knob const& k : all_) {
      auto parts = split(k.name);
      std::size_t same = 0;
      while (same < open.size() && same + 1 < parts.size() && open[same] == parts[same]) ++same;
      open.resize(same);
      for (; open.size() + 1 < parts.size(); open.push_back(parts[open.size()]))
        out += fmt::format("{}{}:\n", indent(open.size()), parts[open.size()]);
      bool const word = std::holds_alternative<std::string*>(k.to);
      out += fmt::format("{}{}: {}\n", indent(open.size()), parts.back(), word ? quote(*std::get<std::string*>(k.to)) : list_or_text(k));
    }
    return out;
  }

  std::string help() const {
    std::string out;
    for (knob const& k : all_) {
      std::string left = fmt::format("  {}={}", k.name, k.followed.empty() ? k.before : fmt::format("<{}>", k.followed));
      left.resize(std::max<std::size_t>(left.size(), 62), ' ');
      out += fmt::format("{} {}{}\n", left, k.help, k.choices.empty() ? "" : fmt::format(": {}", k.choices));
    }
    return out;
  }

 private:
  std::vector<knob> all_;
  options* options_;
  std::vector<std::string> notes_;

  knob& at(std::string_view name) {
    for (knob& k : all_)
      if (k.name == name) return k;
    io::refuse("there is no knob {}", io::show(name));
  }

  // The estimator names the recipe and the recipe the estimator, as in verl: gae needs a critic, which only ppo has.
  void resolve_recipe() {
    knob const &name = at("algorithm.name"), &estimator = at("algorithm.adv_estimator");
    auto& a = options_->algorithm;
    bool const critic = a.adv_estimator == "gae";
    if (name.origin.empty() && !estimator.origin.empty()) a.name = critic ? "ppo" : "grpo";
    auto const& chosen = preset_of(a.name);
    if (chosen.adv_estimator.empty()) {
      if (!estimator.origin.empty()) io::refuse("algorithm.name={} takes no algorithm.adv_estimator; set by {}", a.name, estimator.origin);
    } else if (estimator.origin.empty()) {
      a.adv_estimator = chosen.adv_estimator;
    } else if (critic != (chosen.adv_estimator == "gae")) {
      io::refuse("algorithm.name={} does not go with algorithm.adv_estimator={}: ppo takes gae, the others an estimator without a critic",
                 a.name, a.adv_estimator);
    }
    for (auto const& [key, value] : chosen.sets)  // what nobody set
      if (!key.empty() && at(key).origin.empty()) at(key).parse(value), at(key).origin = "algorithm.name=" + a.name;
  }

  static bool ends_in(std::string_view name, std::string_view key) {
    return name.size() > key.size() && name.ends_with(key) && name[name.size() - key.size() - 1] == '.';
  }
  // key lies below the folder, of which any leading parts may be left out
  static bool below(std::string_view folder, std::string_view key) {
    for (;;) {
      if (key.size() > folder.size() + 1 && key.starts_with(folder) && key[folder.size()] == '.') return true;
      auto const dot = folder.find('.');
      if (dot == std::string_view::npos) return false;
      folder.remove_prefix(dot + 1);
    }
  }
  static bool allowed(std::string_view list, std::string_view value) {
    std::string lower(value);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower == "none" || lower == "~") lower = "null";
    return ("|" + std::string(list) + "|").find("|" + lower + "|") != std::string::npos;
  }
  static std::vector<std::string_view> split(std::string_view s) {
    std::vector<std::string_view> out;
    for (;; s.remove_prefix(s.find('.') + 1)) {
      out.push_back(s.substr(0, s.find('.')));
      if (s.find('.') == std::string_view::npos) return out;
    }
  }
  static std::string indent(std::size_t depth) { return std::string(2 * depth, ' '); }
  static std::string quote(std::string_view s) {  // a double-quoted YAML scalar
    std::string out = "\"";
    for (char c : s) out += c == '"' || c == '\\' ? std::string{'\\', c} : c == '\n' ? "\\n" : std::string{c};
    return out + "\"";
  }
  static std::string list_or_text(knob const& k) {
    auto* const* list = std::get_if<std::vector<std::string>*>(&k.to);
    if (!list) return k.text();
    std::string out;
    for (auto const& s : **list) out += (out.empty() ? "" : ", ") + quote(s);
    return "[" + out + "]";
  }

  // The known name with the smallest edit distance, compared over as many parts as the key has.
  std::string nearest(std::string_view key) const {
    std::size_t const parts = split(key).size();
    std::size_t best = key.size() + 1000;
    std::string_view found;
    auto const look = [&](std::string_view name) {
      std::string_view end = name;
      for (std::size_t n = split(name).size(); n > parts; --n) end.remove_prefix(end.find('.') + 1);
      if (auto const d = distance(key, end); d < best) best = d, found = name;
    };
    for (knob const& k : all_) look(k.name);
    for (alias const& a : aliases) look(a.name);
    for (foreign const& f : foreigners)
      if (!f.name.ends_with('*')) look(f.name);
    return std::string(found);
  }
  static std::size_t distance(std::string_view a, std::string_view b) {  // Levenshtein
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::size_t corner = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < b.size(); ++j)
        corner = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, corner + (a[i] != b[j])}));
    }
    return row.back();
  }
};

}  // namespace weft::train
