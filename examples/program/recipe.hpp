// recipe.hpp — what every recipe_NAME.cpp instantiates: a trainer, its plan, and the closing line.
#pragma once
#include <program/gpu.hpp>
#include <program/recipes.hpp>
#include <program/version.hpp>

#include <weft/engine/cpu_instances.hpp>
#include <weft/train/trainer.hpp>

#include <fmt/format.h>

#include <memory>

namespace program {
template <class Graph, class Objective = weft::rl::policy_objective> int run_recipe(request const& asked) {
  std::unique_ptr<gpu> device;  // outlives what is bound to it
  weft::train::trainer<Graph, Objective> trainer(asked.options);
  if (asked.options.device == "cuda")
    trainer.run_on([&](weft::detail::givens const& given) {
      device = open_gpu({false, plans_file()});
      return device->bind(name_on_gpu(asked.options), given);
    });
  if (asked.options.dry_run && asked.options.plan != "text") {
    auto const& form = asked.options.plan;
    fmt::print("{}", trainer.plan(form == "dot" ? weft::plan_form::dot : form == "mermaid" ? weft::plan_form::mermaid : weft::plan_form::stages));
    return 0;
  }
  if (asked.options.dry_run || asked.options.explain) {
    fmt::print("{}\n{}{}", asked.configuration, trainer.plan(), asked.options.explain ? trainer.explain() : "");
    return 0;
  }
  trainer.record("config.yaml", asked.configuration);
  for (auto const& [name, value] : versions())
    if (name != "weft" && name != "compiler") trainer.fact(name.c_str(), value);  // the headers tell those themselves
  check_machine(trainer.out().string());
  weft::io::stop_on_signals const guard;
  auto const r = trainer.train();
  if (r.stopped_by) {
    fmt::print("stopped after step {}; the same command goes on from there: {}\n", r.steps, trainer.out().string());
    return 128 + r.stopped_by;
  }
  if (r.last_accuracy < 0) fmt::print("result: no validation data, {:.1f} s, {} steps, {}\n", r.seconds, r.steps, trainer.out().string());
  else
    fmt::print("result: val accuracy {} -> {:.3f} in {:.1f} s, {} steps, {}\n",
               r.first_accuracy < 0 ? "n/a" : fmt::format("{:.3f}", r.first_accuracy), r.last_accuracy, r.seconds, r.steps,
               trainer.out().string());
  return 0;
}
}  // namespace program
