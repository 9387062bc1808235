// recipes/sft.hpp — one step of supervised fine-tuning: prompts with the responses to learn, fed by the host.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
template <class Trainer = local>
using sft = graph<
    feed<prompts<training>>, feed<prompt_lengths<training>>, feed<tokens<training>>, feed<lengths<training>>, feed<included>, fed_update<actor>,
    update_epochs<actor, sft_update<actor, sft_objective>, Trainer>,
    kept_update<actor>>;
}  // namespace weft::rl
