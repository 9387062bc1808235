// sampling.cuh — draws a token from each row of logits; what may be drawn and what is returned: see sampling.hpp.
//
// One pass over the logits reduces segments of 1024 ids to the softmax (the function that training uses) and to the best score with its
// noise; a second kernel merges a row's segments. Rows with top_k, top_p or min_p are looked at before; see
// sampling_filter.cuh.
#pragma once
#include <weft/kernels/cuda/sampling_filter.cuh>
#include <weft/kernels/cuda/softmax.cuh>

namespace weft::kernels {
struct draw_counter {
  u32 draw, sample, position;
};

namespace detail {
struct sampling_part {
  softmax_part all;        // of the logits
  f32 kept_max, kept_sum;  // of the scores of what may be drawn: sum of e^(score - kept_max)
  f32 best;                // score and noise
  i32 id;                  // -1: nothing here may be drawn
};
// One warp a segment: part[row][segment].
template <bool whole, bool ruled, class L> __global__ void __launch_bounds__(256, 2)
    sample_segments(size_t vocab, unsigned segments, L const* logits, sampling const* how, token_rules const* rules, u64 seed,
                    draw_counter const* counter, u64 const* least, sampling_part* part) {
  next_may_start();
  wait_for_previous();
  unsigned const segment = blockIdx.x * 8 + threadIdx.x / 32;
  size_t const row = blockIdx.y;
  if (segment >= segments) return;
  sampling const s = how[row];
  token_rules rule{};
  if constexpr (ruled) rule = rules[row];
  draw_counter const at = counter[row];
  u64 const kept_from = least[row];
  f32 const it = device_inverse_temperature(s);
  bool const greedy = !(s.temperature > 0);
  unsigned const count = ids_in_segment(vocab, segment);
  eight x[4];
  load_segment<whole>(logits + row * vocab, vocab, segment, x);
  sampling_part p{softmax_segment(x, count, it), minus_infinity, 0, greedy ? minus_infinity : 0.0f, -1};

  auto const each_id = [&](auto const& f) {
#pragma unroll
    for (int g = 0; g < 4; ++g)
#pragma unroll
      for (int e = 0; e < 8; ++e) f(x[g].at[e], segment * segment_ids + segment_id(g, e));
  };
  if constexpr (ruled) each_id([&](f32& score, unsigned id) { score = id < vocab ? token_score(score, id, it, rule) : minus_infinity; });
  else each_id([&](f32& score, unsigned) { score = __fmul_rn(score, it); });
  if (kept_from)
    each_id([&](f32& score, unsigned id) {
      if (rank_of(score, id) < kept_from) score = minus_infinity;
    });
  each_id([&](f32 score, unsigned) { p.kept_max = fmaxf(p.kept_max, score); });
  p.kept_max = warp_max(p.kept_max);
  if (p.kept_max > minus_infinity) {
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      unsigned const id0 = segment * segment_ids + segment_id(g, 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        philox_words const r = philox({{id0 / 4 + static_cast<unsigned>(half), at.position, at.sample, at.draw}}, seed);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          int const e = 4 * half + w;
          f32 const score = x[g].at[e];
          f32 const weight = exp_fast(__fsub_rn(score, p.kept_max));
          p.kept_sum = __fadd_rn(p.kept_sum, weight);
          // the largest weight / -log u is the largest score - log(-log u)
          f32 const noisy = greedy ? score : __fdividef(weight, -logf(uniform(r.word[w])));
          if (noisy > p.best) p.best = noisy, p.id = static_cast<i32>(id0) + e;
        }
      }
    }
    p.kept_sum = warp_sum(p.kept_sum);
#pragma unroll
    for (int d = 16; d; d /= 2) {
      f32 const best = __shfl_xor_sync(~0u, p.best, d);
      i32 const id = __shfl_xor_sync(~0u, p.id, d);
      if (best > p.best || (best == p.best && static_cast<u32>(id) < static_cast<u32>(p.id))) p.best = best, p.id = id;
    }
    if (!greedy) p.best = __fadd_rn(p.kept_max, logf(p.best));
  }
  if (p.id < 0) p.best = minus_infinity;
  if (threadIdx.x % 32 == 0) part[row * segments + segment] = p;
}
// One warp a row.
template <class L> __global__ void __launch_bounds__(32)
    sample_merge(size_t vocab, unsigned segments, L const* logits, sampling const* how, token_rules const* rules, u64 const* least,
                 sampling_part const* parts, drawn<f32>* out) {
  next_may_start();
  wait_for_previous();
  size_t const row = blockIdx.x;
  sampling_part const* const part = parts + row * segments;
  sampling const s = how[row];
  token_rules const rule = rules ? rules[row] : token_rules{};
  f32 const it = device_inverse_temperature(s);
  softmax_sums<f32> const sums = softmax_merge([&](unsigned i) { return part[i].all; }, segments, it);
  f32 best = minus_infinity, most = minus_infinity;
  i32 id = -1;
  for (unsigned i = threadIdx.x; i < segments; i += 32) {
    if (part[i].best > best) best = part[i].best, id = part[i].id;
    most = fmaxf(most, part[i].kept_max);
  }
  f32 const kept_max = warp_max(most);
  f32 sum = 0;
  for (unsigned i = threadIdx.x; i < segments; i += 32)
    if (part[i].kept_max > minus_infinity) sum = __fmaf_rn(expf(part[i].kept_max - kept_max), part[i].kept_sum, sum);
  sum = warp_sum(sum);
#pragma unroll
  for (int d = 16; d; d /= 2) {
    f32 const other = __shfl_xor_sync(~0u, best, d);
    i32 const other_id = __shfl_xor_sync(~0u, id, d);
    if (other > best || (other == best && static_cast<u32>(other_id) < static_cast<u32>(id))) best = other, id = other_id;
  }
  if (threadIdx.x != 0) return;
  if (sums.entropy != sums.entropy || id < 0) {
    f32 const nan = __int_as_float(0x7fc00000);
    f32 const none = sums.entropy != sums.entropy ? nan : sums.entropy;
    out[row] = {-1, none, none, none};
    return;
  }
  f32 const logit = to_f32(logits[row * vocab + static_cast<size_t>(id)]), log_prob = log_prob_of_logit(sums, logit, it);
  bool const ruled = rule.bias_count > 0 || rule.forbidden_count > 0 || static_cast<size_t>(rule.vocab_limit) < vocab;
  f32 kept = 0;
  if (s.temperature > 0 && (ruled || least[row])) {
    f32 const score = token_score(logit, static_cast<unsigned>(id), it, rule);
    kept = log_prob - (score - kept_max - logf(sum));
  }
  out[row] = {id, log_prob, kept, sums.entropy};
}
}  // namespace detail

inline size_t sampling_scratch_bytes(size_t rows, size_t vocab) {
  return rows * (segments_of(vocab) * sizeof(detail::sampling_part) + sizeof(u64));
}
template <class L> void sample_rows(cuda_context& on, size_t rows, size_t vocab, L const* logits /*[rows, vocab]*/,
                                    sampling const* how /*[rows]*/, token_rules const* rules /*[rows] or null: none*/, u64 seed,
                                    draw_counter const* counter /*[rows]*/, drawn<f32>* out /*[rows]*/) {
  if (!rows) return;
  unsigned const segments = segments_of(vocab);
  u64* const least = reinterpret_cast<u64*>(scratch_of<unsigned char>(on, sampling_scratch_bytes(rows, vocab), "sample_rows"));
  auto* const parts = reinterpret_cast<detail::sampling_part*>(least + rows);
  bool const whole = whole_eights(vocab, logits);
  auto const filter = whole ? detail::filter_kernel<true, L> : detail::filter_kernel<false, L>;
  check(cudaFuncSetAttribute(filter, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(detail::filter_shared)), "filter");
  unsigned const all = static_cast<unsigned>(rows);
  launch_chained(on, "filter", filter, all, detail::filter_threads, sizeof(detail::filter_shared), 1, vocab, logits, how, rules, least);
  auto const run = rules ? (whole ? detail::sample_segments<true, true, L> : detail::sample_segments<false, true, L>)
                         : (whole ? detail::sample_segments<true, false, L> : detail::sample_segments<false, false, L>);
  launch_chained(on, "sample_rows", run, dim3((segments + 7) / 8, all), 256, 0, 1, vocab, segments, logits, how, rules, seed, counter,
                 least, parts);
  launch_chained(on, "sample_rows", detail::sample_merge<L>, all, 32, 0, 1, vocab, segments, logits, how, rules, least, parts, out);
}
}  // namespace weft::kernels
