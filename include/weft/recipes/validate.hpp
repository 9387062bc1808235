// recipes/validate.hpp — answers to held-out prompts, and their scores. Bound beside a training graph it shares the actor's weights and the arena.
#pragma once
#include "parts.hpp"

// clang-format off
namespace weft::rl {
using validate = graph<fed_prompts<validation>, generate<actor, validation>, at<host, reward<validation>>, kept_samples<validation>>;
}  // namespace weft::rl
