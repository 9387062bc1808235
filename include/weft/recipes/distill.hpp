// recipes/distill.hpp — on-policy distillation (arXiv:2306.13649): the policy answers, and at every token of its answers moves to what a teacher would
// say there. Scores are for watching; they train nothing.
#pragma once
#include "../stages/distill.hpp"
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Objective = distill_objective, class Rollout = local, class Trainer = local>
using distill = graph<
    fed_prompts<training>, fed_update<actor>,
    at<Rollout, generate<actor, training>>,
    at<host, reward<training>>,
    include_finished,
    update_epochs<actor, distill_update<actor, teacher, Objective>, Trainer>,
    kept_samples<training>, kept_update<actor>>;
}  // namespace weft::rl
