// Requests that cannot be served: refused before anything runs, with the numbers.
#include <functional>
#include <string>

#include "lab.hpp"
#include <weft/io/error.hpp>

using namespace weft;
using namespace lab;

namespace {
std::string refusal(std::function<void(job<float>&, rollout::settings&)> const& spoil) {
  static tiny<float> const m;
  job<float> j{3, 2, {10, 20, 30}};
  j.prompt_capacity = 160;
  rollout::settings s = settings_for(4, 8);
  bool ran = false;
  spoil(j, s);
  j.watch = {&ran, [](void* seen, rollout::sample_view<float> const&) { return *static_cast<bool*>(seen) = true, false; }, nullptr};
  memory<float, float> w{s, m.config};
  auto r = room_for(j);
  kernels::cpu_context on;
  try {
    rollout::generate<float, float>(on, m.policy(), j.request(), s, r.outputs(), w.view());
  } catch (io::input_error const& e) {
    CHECK_FALSE(ran);
    return e.what();
  }
  return "served";
}
}  // namespace

TEST_CASE("bad requests get one clear line") {
  using J = job<float>&;
  using S = rollout::settings&;
  CHECK(refusal([](J, S) {}) == "served");
  CHECK(refusal([](J j, S s) { s.pages = 1, j.lengths[2] = 25; }) == "served");
  CHECK(refusal([](J j, S s) { s.pages = 1, j.lengths[2] = 50; }) ==
        "rollout: the KV pool has 1 pages of 64 tokens, and one sequence of 89 tokens needs 2; give it at least that many");
  CHECK(refusal([](J j, S) { j.lengths[1] = 161; }) == "rollout: prompt 1 has 161 tokens, where there is room for 160");
  CHECK(refusal([](J j, S s) { j.lengths[1] = 100, s.context = 100; }) ==
        "rollout: prompt 1 has 100 tokens; the context of 100 leaves no room for a response");
  CHECK(refusal([](J, S s) { s.context = 257; }) == "rollout: a context of 257 tokens: choose 2 to the model's 256");
  CHECK(refusal([](J j, S) { j.ids[160 + 3] = 61; }) == "rollout: token 3 of prompt 1 is 61, which is not in the vocabulary of 61");
  CHECK(refusal([](J j, S) { j.ids[0] = -1; }) == "rollout: token 0 of prompt 0 is -1, which is not in the vocabulary of 61");
  CHECK(refusal([](J j, S) { j.stop_ids = {3, 61}; }) == "rollout: stop id 61 is not in the vocabulary of 61");
  CHECK(refusal([](J j, S) { j.sampling[0].temperature = -1; }).find("temperature -1.0") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling[0].temperature = NAN; }).find("temperature nan") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling[0].top_p = 0; }).find("top_p 0.0") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling[0].min_p = 1.5f; }).find("min_p 1.5") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling[0].top_k = -2; }).find("top_k -2") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling[0].min_new_tokens = 5, j.sampling[0].max_new_tokens = 4; }).find("5 to 4 new tokens") !=
        std::string::npos);
  CHECK(refusal([](J j, S) { j.sampling.resize(4); }).find("4 sampling parameters for 3 prompts of 2 samples") != std::string::npos);
  CHECK(refusal([](J j, S) { j.bias_ids = {61}, j.bias = {1}; }).find("logit bias for id 61") != std::string::npos);
  CHECK(refusal([](J j, S) { j.bias_ids = {6}, j.bias = {NAN}; }).find("logit bias nan of id 6") != std::string::npos);
  CHECK(refusal([](J j, S) { j.sampled_ids = 62; }).find("62 ids to be sampled") != std::string::npos);
  CHECK(refusal([](J j, S) {
          static i32 const at[]{0, 0};
          j.strings = {at, nullptr, 1};
        }) == "rollout: stop string 0 is empty");
  CHECK(refusal([](J j, S) {
          static i32 const at[]{0, 1};
          static unsigned char const x = 'x';
          j.strings = {at, &x, 1};
        }).find("1 stop strings need the bytes of the tokens") != std::string::npos);
}
