// rollout/check.hpp — a request that cannot be served is refused before anything is computed: one line, what, which value, what to do.
#pragma once
#include <cmath>
#include <string>

#include <weft/io/input_error.hpp>
#include <weft/kv/pages.hpp>
#include <weft/rollout/request.hpp>
#include <weft/rollout/settings.hpp>

namespace weft::rollout {
namespace detail {
inline void refuse(bool wrong, char const* what, auto... numbers) {  // each % in `what` is a number
  if (!wrong) return;
  std::string line = "rollout: ", said[] = {std::to_string(numbers)..., ""};
  for (size_t next = 0; *what; ++what) *what == '%' ? line += said[next++] : line += *what;
  throw io::input_error(line);
}
}  // namespace detail

template <class T> kernels::sampling const& sampling_of(request<T> const& r, size_t sample) {
  size_t const count = size_t(r.sampling_count);
  return r.sampling[count == 1 ? 0 : count == size_t(r.prompts) ? sample / size_t(r.group) : sample];
}
// Tokens that a response may have.
template <class T> size_t most_tokens(request<T> const& r, settings const& s, i32 capacity, size_t sample) {
  size_t most = size_t(s.context - r.prompt_lengths[sample / size_t(r.group)]);
  if (size_t(capacity) < most) most = size_t(capacity);
  if (i32 const wanted = sampling_of(r, sample).max_new_tokens; wanted > 0 && size_t(wanted) < most) most = size_t(wanted);
  return most;
}

template <class T> void check(request<T> const& r, settings const& s, model::config const& c, i32 capacity) {
  using detail::refuse;
  refuse(s.slots < 1 || s.batched_tokens < 1 || s.head_rows < 1, "slots (%), batched tokens (%) and rows of logits (%) must be at least 1",
         s.slots, s.batched_tokens, s.head_rows);
  refuse(s.context < 2 || s.context > c.max_positions, "a context of % tokens: choose 2 to the model's %", s.context, c.max_positions);
  refuse(s.pages < 0, "% pages of KV pool", s.pages);
  refuse(r.prompts < 0 || r.group < 0, "% prompts of % samples", r.prompts, r.group);
  if (r.prompts == 0 || r.group == 0) return;
  refuse(capacity < 1, "room for % tokens of response; give it at least 1", capacity);
  refuse(r.sampling_count != 1 && r.sampling_count != r.prompts && r.sampling_count != r.prompts * r.group,
         "% sampling parameters for % prompts of % samples; give one, one for each prompt or one for each sample", r.sampling_count,
         r.prompts, r.group);
  refuse(r.sampled_ids < 0 || r.sampled_ids > c.vocab, "% ids to be sampled of a vocabulary of %", r.sampled_ids, c.vocab);
  for (i32 k = 0; k < r.stop.id_count; ++k)
    refuse(r.stop.ids[k] < 0 || r.stop.ids[k] >= c.vocab, "stop id % is not in the vocabulary of %", r.stop.ids[k], c.vocab);
  for (i32 k = 0; k < r.bias_count; ++k) {
    refuse(r.bias_ids[k] < 0 || r.bias_ids[k] >= c.vocab, "logit bias for id %, which is not in the vocabulary of %", r.bias_ids[k],
           c.vocab);
    refuse(std::isnan(r.bias[k]) || r.bias[k] == HUGE_VALF, "logit bias % of id % is no number that can be added", r.bias[k],
           r.bias_ids[k]);
  }
  for (i32 k = 0; k < r.stop.strings.count; ++k) refuse(r.stop.strings.size(size_t(k)) == 0, "stop string % is empty", k);
  refuse(r.stop.strings.count > 0 && r.stop.tokens.count < 1, "% stop strings need the bytes of the tokens", r.stop.strings.count);
  for (i32 k = 0; k < r.sampling_count; ++k) {
    kernels::sampling const& p = r.sampling[k];
    refuse(!(p.temperature == 0 || p.temperature >= 1e-4f) || !std::isfinite(p.temperature),
           "temperature % (sampling parameters %): choose 0 (greedy) or at least 0.0001", p.temperature, k);
    refuse(!(p.top_p > 0 && p.top_p <= 1), "top_p % (sampling parameters %): choose more than 0, at most 1", p.top_p, k);
    refuse(!(p.min_p >= 0 && p.min_p <= 1), "min_p % (sampling parameters %): choose 0 to 1", p.min_p, k);
    refuse(p.top_k < -1, "top_k % (sampling parameters %): choose -1 (all) or at least 1", p.top_k, k);
    refuse(p.min_new_tokens < 0 || p.max_new_tokens < 0 || (p.max_new_tokens > 0 && p.min_new_tokens > p.max_new_tokens),
           "% to % new tokens (sampling parameters %): choose 0 <= min <= max", p.min_new_tokens, p.max_new_tokens, k);
  }
  size_t longest = 0;
  for (size_t i = 0; i < size_t(r.prompts); ++i) {
    i32 const length = r.prompt_lengths[i];
    refuse(length < 0 || length > r.prompt_capacity, "prompt % has % tokens, where there is room for %", i, length, r.prompt_capacity);
    refuse(length >= s.context, "prompt % has % tokens; the context of % leaves no room for a response", i, length, s.context);
    for (i32 k = 0; k < length; ++k) {
      i32 const id = r.prompt_ids[i * size_t(r.prompt_capacity) + size_t(k)];
      refuse(id < 0 || id >= c.vocab, "token % of prompt % is %, which is not in the vocabulary of %", k, i, id, c.vocab);
    }
    for (size_t g = 0; length > 0 && g < size_t(r.group); ++g) {  // the last token that is drawn is never computed
      size_t const cached = size_t(length) + most_tokens(r, s, capacity, i * size_t(r.group) + g) - 1;
      if (cached > longest) longest = cached;
    }
  }
  refuse(kv::pages_for(longest) > size_t(s.pages),
         "the KV pool has % pages of % tokens, and one sequence of % tokens needs %; give it at least that many", s.pages, kv::page_tokens,
         longest, kv::pages_for(longest));
}
}  // namespace weft::rollout
