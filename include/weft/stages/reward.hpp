// stages/reward.hpp — a score for each sample, by a function of the user's on the host; and who takes part in the update.
#pragma once
#include <weft/rollout/stopping.hpp>
#include "ports.hpp"

namespace weft::rl {
// score(context, row, ids, count): row of the data set, ids of the response. Borrowed; called for one sample at a time.
template <class Use> struct reward_source {
  void* context = nullptr;
  reward_result (*score)(void* context, i32 row, i32 const* ids, i32 count) = nullptr;
};
template <class Use> struct reward {
  static void run(in<rows<Use>> row, in<tokens<Use>> t, in<lengths<Use>> n, in<finishes<Use>> finish, setting<reward_source<Use>> by,
                  out<scores<Use>> to) {
    size_t const each = n.template extent<group<Use>>(), room = t.template extent<position<Use>>();
    for (size_t s = 0; s < n.count(); ++s) {
      auto& r = to.flat(s);
      r = {0, reward_result::absent};
      if (row(s / each) < 0 || n.flat(s) == 0 || finish.flat(s) == i32(rollout::finish::aborted)) continue;
      r = by->score(by->context, row(s / each), t.data + s * room, n.flat(s));
      if (r.what == reward_result::scored && !(r.value - r.value == 0)) r = {0, reward_result::not_finite};
    }
  }
};
struct include_scored {  // a sample without a number is left out of its group and of every denominator
  static void run(in<scores<training>> s, in<lengths<training>> n, out<included> use, out<response_mask> mask) {
    size_t const room = mask.extent<position<training>>();
    for (size_t i = 0; i < s.count(); ++i) {
      use.flat(i) =
          s.flat(i).what == reward_result::scored && s.flat(i).value - s.flat(i).value == 0;  // a stage of a user's may let NaN pass
      for (size_t t = 0; t < room; ++t) mask.flat(i * room + t) = use.flat(i) && i32(t) < n.flat(i);
    }
  }
};
}  // namespace weft::rl
