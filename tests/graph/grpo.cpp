// The same step on one device and cut over two gives the same numbers; the moves and the bytes are what the table says.
#include "grpo.hpp"
#include <doctest/doctest.h>
namespace {
using cut = weft::graph<weft::feed<prompts>, weft::at<rollout, generate, score>, group_advantage, weft::at<rollout, policy_loss>, sgd,
                        weft::keep<loss>>;
static_assert(grpo::moves.n == 0 && cut::moves.n == 5);
static_assert(weft::reshard<tokens, rollout, weft::local>() == weft::move::gather);
static_assert(weft::reshard<grads, rollout, weft::local>() == weft::move::sum);
// prompts, tokens, logp_old, rewards, advantages, grads, loss: grads takes the bytes of rewards
static_assert(grpo::may_share<rewards, grads>() && !grpo::may_share<tokens, grads>());
}  // namespace

TEST_CASE("grpo") {
  auto a = weft::bind<grpo>(weft::cpu{}, batch{4}, group{4}, seq{8});
  auto b = weft::bind<cut>(weft::cpu{}, batch{4}, group{4}, seq{8}, data{2});
  for (size_t d = 0; d < 2; ++d)
    for (size_t i = 0; i < 4; ++i) a.view_of<prompts>()(i) = b.view_of<prompts>(d)(i) = int(i) + 1;
  for (size_t d = 0; d < 2; ++d)
    for (size_t k = 0; k < 32; ++k) a.view_of<weights>()(k) = b.view_of<weights>(d)(k) = 0.5f;
  for (int i = 0; i < 3; ++i) {
    a.step();
    b.step();
    if (a.view_of<loss>()() != b.view_of<loss>()()) FAIL("");
  }
  for (size_t k = 0; k < 32; ++k)
    if (a.view_of<weights>()(k) != b.view_of<weights>(1)(k)) FAIL("");
}
