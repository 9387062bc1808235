// aggregation.hpp — how the losses of tokens become one number. Every mode is a weight for each token, made of integers that
// are counted once for the whole mini-batch over all ranks: gradients are summed, and no cut into micro-batches changes them.
// Names: verl's loss_agg_mode; trl_*: TRL's loss_type where it is none of those.
#pragma once
#include <cstdint>
#include <type_traits>
#include "../error.hpp"
#include "error.hpp"
#include "unit.hpp"

namespace weft::objective {
enum class aggregation : i32 {
  token_mean,               // 1 / tokens                       (TRL: dapo)
  token_sum,                // 1
  seq_mean_token_sum,       // 1 / sequences
  seq_mean_token_sum_norm,  // 1 / (sequences loss_scale_factor)  (Dr. GRPO; TRL: dr_grpo, the factor is max_completion_length)
  seq_mean_token_mean,      // 1 / (sequences length)
  trl_grpo,                 // 1 / (rows length): sequences without a token count
  trl_luspo,                // length / rows
  sequence_mean,            // of a sequence term: 1 / rows, shared out over the tokens by the term
  pair_mean,                // of a pair term: 1 / pairs
};

template <class Mask> struct counts {  // of the whole mini-batch over all ranks, under this mask
  using mask = Mask;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;  // with at least one token
  std::int64_t rows = 0;       // all of them
  std::int64_t pairs = 0;
};

template <class Mask, class M> WEFT_HD void count_row(size_t width, M const* mask /*[width]*/, counts<Mask>& n) {
  std::int64_t length = 0;
  for (size_t t = 0; t < width; ++t) length += mask[t] != 0;
  n.tokens += length, n.sequences += length > 0, n.rows += 1;
}

template <aggregation Mode> using unit_of =
    std::conditional_t<Mode == aggregation::pair_mean, per_pair,
                       std::conditional_t<Mode == aggregation::sequence_mean, per_sequence, per_token>>;

// Weight of one token (or pair) of a sequence of `length` tokens that count. An empty batch weighs nothing.
template <class T, class Mask> WEFT_HD T weight_of(aggregation mode, double loss_scale_factor, counts<Mask> const& n, T length) {
  auto over = [](std::int64_t count) { return count > 0 ? T(1) / T(count) : T(0); };
  switch (mode) {
    case aggregation::token_mean:
      return over(n.tokens);
    case aggregation::token_sum:
      return T(1);
    case aggregation::seq_mean_token_sum:
      return over(n.sequences);
    case aggregation::seq_mean_token_sum_norm:
      return over(n.sequences) / T(loss_scale_factor);
    case aggregation::seq_mean_token_mean:
      return length > 0 ? over(n.sequences) / length : T(0);
    case aggregation::trl_grpo:
      return length > 0 ? over(n.rows) / length : T(0);
    case aggregation::trl_luspo:
      return over(n.rows) * length;
    case aggregation::sequence_mean:
      return over(n.rows);
    case aggregation::pair_mean:
      return over(n.pairs);
  }
  return T(0);
}

struct aggregation_name {
  char const* name;
  aggregation mode;
};
inline constexpr aggregation_name aggregation_names[] = {
    // what users type: loss_agg_mode
    {"token-mean", aggregation::token_mean},
    {"token-sum", aggregation::token_sum},
    {"seq-mean-token-sum", aggregation::seq_mean_token_sum},
    {"seq-mean-token-sum-norm", aggregation::seq_mean_token_sum_norm},
    {"seq-mean-token-mean", aggregation::seq_mean_token_mean},
    {"trl-grpo", aggregation::trl_grpo},
    {"trl-luspo", aggregation::trl_luspo},
};
}  // namespace weft::objective
