// A PPO step on one device, and cut over any numbers of them: the same metrics from one graph type.
#include "ppo.hpp"
#include "weft/engine/cpu.hpp"
#include "weft/plan.hpp"
#include <array>
#include <doctest/doctest.h>
namespace {
using namespace ppo_test;
struct rollout : pool<split<spread, sample>> {};
struct trainer : pool<split<lane, sample>> {};
using step = ppo<rollout, trainer>;

template <class E> auto make(E on, size_t samples, size_t spreads, size_t lanes) {
  return bind<step>(on, sample{samples}, position{6}, epoch{2}, minibatch{4}, microbatch{6}, row{4}, lane{lanes}, spread{spreads},
                    config<actor>{2, 4, 8}, config<reference>{2, 4, 8}, config<critic>{1, 4, 8}, sampling{}, kl_penalty{}, discount{},
                    clip{}, budget{}, learning{});
}
std::array<float, 6> run(size_t samples, size_t spreads, size_t lanes) {
  auto s = make(cpu{{}, true}, samples, spreads, lanes);
  for (size_t d = 0; d < (spreads > lanes ? spreads : lanes); ++d) {
    for (size_t i = 0; i < samples; ++i) s.view_of<prompts>(d)(i) = int(i * i % 5);
    for (size_t i = 0; i < 2; ++i) s.view_of<epoch_seed>(d)(i) = int(i);
    for (float& x : s.view_of<moments<actor>>(d)) x = 0;
    for (float& x : s.view_of<moments<critic>>(d)) x = 0;
    for (size_t k = 0; k < 8; ++k) {
      s.view_of<weights<actor>>(d)(k) = s.view_of<weights<reference>>(d)(k) = 0.125f * float(k);
      s.view_of<weights<critic>>(d)(k) = 0.0625f * float(k);
    }
  }
  std::array<float, 6> out{};
  for (size_t i = 0; i < 6; i += 2) {
    s.step();
    out[i] = s.view_of<metrics>()(0);
    out[i + 1] = s.view_of<metrics>()(1);
  }
  return out;
}
}  // namespace

TEST_CASE("one graph type serves every number of devices") {
  for (size_t samples : {16, 17}) {
    auto const a = run(samples, 1, 1);
    CHECK(a[0] != a[2]);
    for (auto [spreads, lanes] : {std::pair<size_t, size_t>{4, 2}, {3, 2}, {1, 3}, {2, 2}, {5, 1}}) {
      auto const b = run(samples, spreads, lanes);
      for (size_t i = 0; i < 6; ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("segments: the reward on the host runs beside reference and values") {
  using local_step = ppo<>;
  static_assert(local_step::segments.n == 4 && !local_step::segments.at[1].host && local_step::segments.at[2].host);
}
