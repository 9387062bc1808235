// stages/advantage.hpp — from scores to the advantage of each token. The arithmetic is objective/'s; a stage says which samples belong together.
#pragma once
#include <weft/objective/group_advantage.hpp>
#include <weft/objective/reward.hpp>
#include <weft/objective/token_advantage.hpp>
#include "ports.hpp"

namespace weft::rl {
// ---- of a group: every token of a sample has the sample's advantage --------------------------------------
enum class group_estimator : i32 { grpo, centred, rloo, opo };
struct group_baseline {  // algorithm.adv_estimator, norm_adv_by_std_in_grpo
  objective::group_settings grpo;
  group_estimator estimator = group_estimator::grpo;
};
struct group_advantage {
  static void run(in<scores<training>> s, in<included> use, in<lengths<training>> n, in<response_mask> mask, setting<group_baseline> o,
                  scratch<group_numbers> numbers, out<advantages> a, out<group_drops> dropped) {
    size_t const each = s.extent<group<training>>(), room = a.extent<position<training>>();
    f32 *const score = numbers.data, *const advantage = score + each;
    for (size_t p = 0; p < dropped.count(); ++p) {
      size_t const first = p * each;
      i32 const *const scored = use.data + first, *const length = n.data + first;
      for (size_t g = 0; g < each; ++g) score[g] = s.flat(first + g).value;
      auto const result = o->estimator == group_estimator::grpo      ? objective::grpo(o->grpo, each, score, scored, advantage)
                          : o->estimator == group_estimator::centred ? objective::centred(each, score, scored, advantage)
                          : o->estimator == group_estimator::rloo    ? objective::rloo(each, score, scored, advantage)
                                                                     : objective::opo(each, score, length, scored, advantage);
      dropped(p) = i32(result);
      for (size_t g = 0; g < each; ++g)
        objective::broadcast(room, advantage[g], mask.data + (first + g) * room, a.data + (first + g) * room);
    }
  }
};

// ---- of a token ---------------------------------------------------------------------------------------------
struct kl_in_reward {  // algorithm.use_kl_in_reward, kl_penalty; the coefficient is fed: it may adapt
  objective::kl_estimator estimator = objective::kl_estimator::k1;
};
struct rewards_of_tokens {  // the score at the last token, minus KL to the reference at every token
  static void run(in<scores<training>> s, in<response_mask> mask, in<log_probs<training>> old, optional<in<ref_log_probs>> ref,
                  in<kl_coefficient> beta, setting<kl_in_reward> o, out<token_rewards> r, out<kl_means> kl) {
    size_t const room = r.extent<position<training>>();
    for (size_t i = 0; i < s.count(); ++i)
      kl.flat(i) = objective::token_rewards(room, s.flat(i).value, mask.data + i * room, o->estimator, ref ? double(beta()) : 0,
                                            old.data + i * room, ref ? ref.data + i * room : nullptr, r.data + i * room);
  }
};
struct gae {  // and the moments of each sample's advantages, for whitening
  static void run(in<token_rewards> r, in<values> v, in<response_mask> mask, setting<objective::gae_settings> o, out<advantages> a,
                  out<returns> target, out<row_moments> m) {
    size_t const room = a.extent<position<training>>();
    for (size_t i = 0; i < m.count(); ++i) {
      size_t const at = i * room;
      objective::gae(*o, room, r.data + at, v.data + at, mask.data + at, a.data + at, target.data + at);
      m.flat(i) = objective::moments_of(room, a.data + at, mask.data + at);
    }
  }
};
struct merge_moments {  // in the order of samples, wherever they were computed
  static void run(in<row_moments> rows, out<batch_moments> all) { all() = objective::merged(rows.count(), rows.data); }
};
struct whiten {  // gae's moments feed it, so they are of the old values
  static void run(in<batch_moments> all, in<response_mask> mask, inout<advantages> a) {
    size_t const room = a.extent<position<training>>();
    for (size_t at = 0; at < a.count(); at += room) objective::whiten(room, all(), mask.data + at, a.data + at);
  }
};
}  // namespace weft::rl
