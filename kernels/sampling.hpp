// sampling.hpp — draws one token from a row of logits by Gumbel-max: argmax of score + Gumbel noise over the kept set is a draw from its
// softmax.
//
// score = (logit + bias) / temperature. What may be drawn: ids below vocab_limit that are not forbidden; of these the top_k best scores
// (ties: the smaller id first); of these, by falling score, as many as reach the mass top_p; of these the ones with at least min_p of the
// best one's probability. Temperature 0 takes the best score. Noise is a function of (seed, draw, sample, position, id) alone.
#pragma once
#include <weft/element.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/kernels/softmax.hpp>

namespace weft::kernels {
struct sampling {
  f32 temperature = 1;  // 0: greedy
  i32 top_k = -1;       // below 1: all
  f32 top_p = 1, min_p = 0;
  i32 min_new_tokens = 0;
  i32 max_new_tokens = 0;  // 0: all the room
};
struct token_rules {             // for one position; borrowed pointers
  i32 vocab_limit = 0x7fffffff;  // ids from here on are never drawn
  i32 forbidden_count = 0;
  i32 const* forbidden = nullptr;  // ids not drawn now, such as stop ids before min_new_tokens
  i32 bias_count = 0;
  i32 const* bias_ids = nullptr;
  f32 const* bias = nullptr;  // added to logits before the temperature
};
// log_prob and entropy: under softmax(logits / temperature) over the whole vocabulary, before bias, rules and filters; greedy: temperature 1.
// log_prob - log_kept is the log-prob under the distribution that was drawn from; log_kept is 0 without bias, rules and filters, and when greedy.
template <class T> struct drawn {
  i32 id;  // -1: a logit is NaN or infinite, or nothing may be drawn
  T log_prob, log_kept, entropy;
};
// 1 / temperature, as training must use it for the same log-probs
template <class T> WEFT_HD T inverse_temperature_of(sampling const& s) { return s.temperature > 0 ? 1 / static_cast<T>(s.temperature) : T(1); }

template <class T> drawn<T> sample_row(size_t vocab, T const* logits /*[vocab]*/, T* room /*[vocab] scratch*/, sampling const& how,
                                       token_rules const& rules, u64 seed, u32 draw, u32 sample, u32 position);
}  // namespace weft::kernels
#include <weft/kernels/cpu/sampling.hpp>
