// stages/advantage.hpp — from scores to the advantage of each token. The arithmetic is objective/'s; a stage says which samples belong together.
#pragma once
#include <weft/objective/group_advantage.hpp>
#include <weft/objective/reward.hpp>
#include <weft/objective/token_advantage.hpp>
#include "ports.hpp"

namespace weft::rl {
// ---- of a group: every token of a sample has the sample's advantage --------------------------------------
enum class group_estimator : i32 {
  grpo,
  centred,
  rloo,
  opo,
  grpo_passk,  // of the group alone
  gpg,
  reinforce_plus_plus,
  reinforce_plus_plus_baseline,  // scale_advantages makes them of the whole batch
};
struct group_baseline {  // algorithm.adv_estimator, norm_adv_by_std_in_grpo, gamma
  objective::group_settings grpo;
  group_estimator estimator = group_estimator::grpo;
  double gamma = 1;  // of reinforce_plus_plus
};
// With token rewards the score of a sample is their sum, so KL in the reward is part of it. The moments are what scale_advantages needs:
// of the sample's advantages, for gpg the share of scores other than 0.
struct group_advantage {
  static void run(in<scores<training>> s, in<included> use, in<lengths<training>> n, in<response_mask> mask,
                  optional<in<token_rewards>> rewards, setting<group_baseline> o, scratch<group_numbers> numbers, out<advantages> a,
                  out<group_drops> dropped, optional<out<row_moments>> moments) {
    size_t const each = s.extent<group<training>>(), room = a.extent<position<training>>();
    f32 *const score = numbers.data, *const advantage = score + each;
    for (size_t p = 0; p < dropped.count(); ++p) {
      size_t const first = p * each;
      i32 const *const scored = use.data + first, *const length = n.data + first;
      for (size_t g = 0; g < each; ++g) {
        score[g] = rewards ? 0 : s.flat(first + g).value;
        for (size_t t = 0; rewards && scored[g] && t < size_t(length[g]); ++t) score[g] += rewards.flat((first + g) * room + t);
      }
      dropped(p) = i32(of_group(*o, each, score, length, scored, advantage));
      for (size_t g = 0; g < each; ++g) {
        size_t const row = (first + g) * room;
        if (o->estimator == group_estimator::reinforce_plus_plus && rewards)
          objective::returns(o->gamma, room, rewards.data + row, mask.data + row, a.data + row);
        else objective::broadcast(room, advantage[g], mask.data + row, a.data + row);
        if (!moments) continue;
        if (o->estimator != group_estimator::gpg) moments.flat(first + g) = objective::moments_of(room, a.data + row, mask.data + row);
        else moments.flat(first + g) = {double(scored[g]), double(scored[g] && score[g] != 0), 0};
      }
    }
  }
  static objective::group_result of_group(group_baseline const& o, size_t n, f32 const* score, i32 const* length, i32 const* scored,
                                          f32* to) {
    switch (o.estimator) {
      case group_estimator::grpo:
        return objective::grpo(o.grpo, n, score, scored, to);
      case group_estimator::rloo:
        return objective::rloo(n, score, scored, to);
      case group_estimator::opo:
        return objective::opo(n, score, length, scored, to);
      case group_estimator::grpo_passk:
        return objective::grpo_passk(o.grpo, n, score, scored, to);
      case group_estimator::gpg:
        return objective::gpg(1, 1, n, score, scored, to);
      case group_estimator::reinforce_plus_plus:  // no baseline
        for (size_t g = 0; g < n; ++g) to[g] = scored[g] ? score[g] : 0;
        return objective::group_result::used;
      case group_estimator::centred:
      case group_estimator::reinforce_plus_plus_baseline:
        return objective::centred(n, score, scored, to);
    }
    return objective::group_result::dropped;
  }
};
// REINFORCE++ whitens over the tokens of the batch; GPG multiplies by answers / answers with a score other than 0.
struct scale_advantages {
  static void run(in<batch_moments> all, in<response_mask> mask, setting<group_baseline> o, inout<advantages> a) {
    size_t const room = a.extent<position<training>>();
    bool const whole =
        o->estimator == group_estimator::reinforce_plus_plus || o->estimator == group_estimator::reinforce_plus_plus_baseline;
    for (size_t at = 0; whole && at < a.count(); at += room) objective::whiten(room, all(), mask.data + at, a.data + at);
    f32 const alpha = o->estimator == group_estimator::gpg && all().mean > 0 ? f32(1 / all().mean) : 1;
    for (size_t i = 0; alpha != 1 && i < a.count(); ++i) a.flat(i) *= alpha;
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

// ---- of a prompt's greedy answer: ReMax ---------------------------------------------------------------------
struct ask_greedily {  // the same prompts, at temperature 0
  static void run(in<prompts<training>> p, in<prompt_lengths<training>> np, in<rows<training>> row, in<draws<training>> draw,
                  out<prompts<greedy>> to_p, out<prompt_lengths<greedy>> to_np, out<rows<greedy>> to_row, out<draws<greedy>> to_draw,
                  out<sampling_of<greedy>> how) {
    for (size_t i = 0; i < p.count(); ++i) to_p.flat(i) = p.flat(i);
    for (size_t i = 0; i < np.count(); ++i) {
      to_np(i) = np(i), to_row(i) = row(i), to_draw(i) = draw(i);
      how(i) = kernels::sampling{};
      how(i).temperature = 0;
    }
  }
};
struct remax_advantage {  // a greedy answer without a score leaves its prompt out, counted
  static void run(in<token_rewards> r, in<scores<greedy>> baseline, in<response_mask> mask, out<advantages> a, out<group_drops> dropped) {
    size_t const each = a.extent<group<training>>(), room = a.extent<position<training>>();
    for (size_t p = 0; p < dropped.count(); ++p) {
      dropped(p) = baseline.flat(p).what != reward_result::scored;
      for (size_t row = p * each * room; row < (p + 1) * each * room; row += room) {
        if (dropped(p)) objective::broadcast(room, 0.0f, mask.data + row, a.data + row);
        else objective::remax(room, r.data + row, baseline.flat(p).value, mask.data + row, a.data + row, a.data + row);
      }
    }
  }
};
}  // namespace weft::rl
