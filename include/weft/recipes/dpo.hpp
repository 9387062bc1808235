// recipes/dpo.hpp — learning from pairs, fed by the host: each prompt with a chosen and a rejected answer. DPO (arXiv:2305.18290) moves a policy away
// from its reference; reward_model learns a score of its own (Bradley-Terry).
#pragma once
#include "../stages/preference.hpp"
#include "parts.hpp"

// clang-format off
namespace weft::rl {
using fed_pairs = at<local, feed<prompts<training>>, feed<prompt_lengths<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<included>>;

template <class Objective = dpo_objective, class Trainer = local>
using dpo = graph<
    fed_pairs, fed_update<actor>,
    pack_all,
    scored_by<reference_log_probs<reference>, ref_log_probs, Trainer>,
    update_epochs<actor, preference_update<actor, Objective>, Trainer>,
    kept_update<actor>>;

template <class Objective = reward_objective, class Trainer = local>
using reward_model = graph<
    fed_pairs, fed_update<actor>,
    update_epochs<actor, score_update<actor, Objective>, Trainer>,
    kept_update<actor>>;
}  // namespace weft::rl
