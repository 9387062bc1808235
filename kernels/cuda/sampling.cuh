// sampling.cuh — draws a token from each row of logits; what may be drawn and what is returned: see sampling.hpp.
//
// One pass over the logits reduces segments of 1024 ids to the softmax (the function that training uses) and to the best score with its
// noise; a second kernel merges a row's segments. Rows with top_k, top_p or min_p are looked at before by filter_kernel, without a sort:
// ids are ordered by (score, smaller id first) as one integer, and the least kept integer is found by bisection; masses are integers, so
// that no order of sums matters.
#pragma once
#include <weft/kernels/cuda/softmax.cuh>
#include <weft/kernels/sampling.hpp>

namespace weft::kernels {
struct draw_counter {
  u32 draw, sample, position;
};

namespace detail {
struct sampling_part {
  softmax_part all;     // of the logits
  f32 kept_max, kept_sum;  // of the scores of what may be drawn: sum of e^(score - kept_max)
  f32 best;             // score and noise
  i32 id;               // -1: nothing here may be drawn
};
__device__ inline f32 device_inverse_temperature(sampling const& s) { return s.temperature > 0 ? __fdiv_rn(1.0f, s.temperature) : 1.0f; }
__device__ inline bool is_filtered(sampling const& s) { return s.temperature > 0 && (s.top_k >= 1 || s.top_p < 1 || s.min_p > 0); }
__device__ inline f32 token_score(f32 logit, unsigned id, f32 it, token_rules const& rules) {
  if (id >= static_cast<unsigned>(rules.vocab_limit)) return minus_infinity;
  for (i32 b = 0; b < rules.bias_count; ++b)
    if (rules.bias_ids[b] == static_cast<i32>(id)) logit = __fadd_rn(logit, rules.bias[b]);
  for (i32 f = 0; f < rules.forbidden_count; ++f)
    if (rules.forbidden[f] == static_cast<i32>(id)) return minus_infinity;
  return __fmul_rn(logit, it);
}

// (score, smaller id first) as an integer: 32 bits that order as the score does, then 20 bits of the id
inline constexpr u32 id_bits = 20;
__device__ inline u32 ordered(f32 x) {
  u32 const bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline u64 rank_of(f32 score, unsigned id) { return u64{ordered(score)} << id_bits | ((1u << id_bits) - 1 - id); }
__device__ inline f32 score_of_rank(u64 rank) {
  u32 const bits = static_cast<u32>(rank >> id_bits);
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}
__device__ inline u64 mass_of(f32 score, f32 best) { return __float2ull_rn(__expf(score - best) * 0x1p40f); }

inline constexpr unsigned filter_threads = 1024, filter_room = 8192;
struct filter_shared {
  u64 sum[2], most;
  unsigned kept;
  u64 candidate[filter_room];
};
struct filter_sums {
  u64 count, mass;
};
__device__ inline filter_sums filter_total(filter_shared& shared, u64 count, u64 mass) {
#pragma unroll
  for (int d = 16; d; d /= 2) count += __shfl_xor_sync(~0u, count, d), mass += __shfl_xor_sync(~0u, mass, d);
  __syncthreads();
  if (threadIdx.x == 0) shared.sum[0] = shared.sum[1] = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&shared.sum[0]), count);
    atomicAdd(reinterpret_cast<unsigned long long*>(&shared.sum[1]), mass);
  }
  __syncthreads();
  return {shared.sum[0], shared.sum[1]};
}
// f(rank) for every id of the row that may be drawn
template <class L, class F> __device__ void each_rank(L const* x, size_t vocab, f32 it, token_rules const& rules, F const& f) {
  for (unsigned id = threadIdx.x; id < vocab; id += filter_threads)
    if (f32 const score = token_score(to_f32(x[id]), id, it, rules); score > minus_infinity) f(rank_of(score, id));
}
// the largest rank in [low, high] for which enough(count, mass of the ranks from it on) holds; it must hold for low
template <class Each, class Enough>
__device__ u64 bisect(filter_shared& shared, u64 low, u64 high, f32 best, bool masses, Each const& each, Enough const& enough) {
  while (low < high) {
    u64 const middle = low + (high - low + 1) / 2;
    u64 count = 0, mass = 0;
    each([&](u64 rank) {
      if (rank >= middle) {
        ++count;
        if (masses) mass += mass_of(score_of_rank(rank), best);
      }
    });
    filter_sums const s = filter_total(shared, count, mass);
    if (enough(s.count, s.mass)) low = middle;
    else high = middle - 1;
  }
  return low;
}
// least[row] = the least rank that is kept; 0 for rows without filters
template <class L> __global__ void __launch_bounds__(filter_threads)
    filter_kernel(size_t vocab, L const* logits, sampling const* how, token_rules const* rules, u64* least) {
  extern __shared__ unsigned char raw[];
  auto& shared = *reinterpret_cast<filter_shared*>(raw);
  size_t const row = blockIdx.x;
  sampling const s = how[row];
  if (!is_filtered(s)) {
    if (threadIdx.x == 0) least[row] = 0;
    return;
  }
  token_rules const rule = rules ? rules[row] : token_rules{};
  L const* const x = logits + row * vocab;
  f32 const it = device_inverse_temperature(s);
  auto const in_row = [&](auto const& f) { each_rank(x, vocab, it, rule, f); };

  u64 most = 0;
  in_row([&](u64 rank) { most = rank > most ? rank : most; });
  if (threadIdx.x == 0) shared.most = 0, shared.kept = 0;
  __syncthreads();
#pragma unroll
  for (int d = 16; d; d /= 2) {
    u64 const other = __shfl_xor_sync(~0u, most, d);
    most = other > most ? other : most;
  }
  if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned long long*>(&shared.most), static_cast<unsigned long long>(most));
  __syncthreads();
  most = shared.most;
  f32 const best = score_of_rank(most);
  if (most == 0 || !(best < __builtin_huge_valf())) {  // nothing may be drawn, or the row is not finite: the merge says so
    if (threadIdx.x == 0) least[row] = 0;
    return;
  }

  // how many ids, and how much mass, lie within 2, 4, 8, 16 of the best score
  constexpr int cuts = 4;
  u64 count[cuts + 1] = {}, mass[cuts + 1] = {};
  in_row([&](u64 rank) {
    f32 const score = score_of_rank(rank), below = best - score;
    u64 const m = mass_of(score, best);
#pragma unroll
    for (int c = 0; c <= cuts; ++c)
      if (c == cuts || below <= static_cast<f32>(2 << c)) ++count[c], mass[c] += m;
  });
  filter_sums total[cuts + 1];
  for (int c = 0; c <= cuts; ++c) total[c] = filter_total(shared, count[c], mass[c]);
  bool const ranked = s.top_k >= 1 && static_cast<u64>(s.top_k) < total[cuts].count, by_mass = s.top_p < 1;
  auto const needed = [&](u64 of) { return static_cast<u64>(ceil(static_cast<double>(s.top_p) * static_cast<double>(of))); };
  u64 floor = s.min_p > 0 ? u64{ordered(best + logf(s.min_p))} << id_bits : 0, low = 0;
  if (ranked || by_mass) {
    int cut = 0;
    while (cut < cuts && (ranked ? total[cut].count < static_cast<u64>(s.top_k) : total[cut].mass < needed(total[cuts].mass))) ++cut;
    bool const listed = cut < cuts && total[cut].count <= filter_room;
    if (cut < cuts) low = u64{ordered(best - static_cast<f32>(2 << cut))} << id_bits;
    if (listed) {
      in_row([&](u64 rank) {
        if (best - score_of_rank(rank) <= static_cast<f32>(2 << cut)) shared.candidate[atomicAdd(&shared.kept, 1u)] = rank;
      });
      __syncthreads();
    }
    auto const find = [&](auto const& each) {
      u64 from = low, of = total[cuts].mass;
      if (ranked) {
        from = bisect(shared, from, most, best, false, each, [&](u64 n, u64) { return n >= static_cast<u64>(s.top_k); });
        u64 n = 0, m = 0;
        each([&](u64 rank) {
          if (rank >= from) m += mass_of(score_of_rank(rank), best);
        });
        of = filter_total(shared, n, m).mass;
      }
      if (by_mass) {
        u64 const enough = needed(of);
        from = bisect(shared, from, most, best, true, each, [&](u64, u64 m) { return m >= enough; });
      }
      return from;
    };
    if (listed) {
      unsigned const n = shared.kept;
      low = find([&](auto const& f) {
        for (unsigned i = threadIdx.x; i < n; i += filter_threads) f(shared.candidate[i]);
      });
    } else {
      low = find(in_row);
    }
  }
  if (threadIdx.x == 0) least[row] = low > floor ? low : floor;
}

// One warp a segment: part[row][segment].
template <bool whole, class L> __global__ void __launch_bounds__(256, 2)
    sample_segments(size_t vocab, unsigned segments, L const* logits, sampling const* how, token_rules const* rules, u64 seed,
                    draw_counter const* counter, u64 const* least, sampling_part* part) {
  unsigned const segment = blockIdx.x * 8 + threadIdx.x / 32;
  size_t const row = blockIdx.y;
  if (segment >= segments) return;
  sampling const s = how[row];
  token_rules const rule = rules ? rules[row] : token_rules{};
  draw_counter const at = counter[row];
  u64 const kept_from = least[row];
  f32 const it = device_inverse_temperature(s);
  bool const greedy = !(s.temperature > 0);
  unsigned const count = ids_in_segment(vocab, segment);
  eight x[4];
  load_segment<whole>(logits + row * vocab, vocab, segment, x);
  sampling_part p{softmax_segment(x, count, it), minus_infinity, 0, minus_infinity, -1};

#pragma unroll
  for (int g = 0; g < 4; ++g)
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      unsigned const id = segment * segment_ids + segment_id(g, e);
      f32 score = segment_id(g, e) < count ? token_score(x[g].at[e], id, it, rule) : minus_infinity;
      if (kept_from && rank_of(score, id) < kept_from) score = minus_infinity;
      x[g].at[e] = score;
      p.kept_max = fmaxf(p.kept_max, score);
    }
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
          p.kept_sum = __fadd_rn(p.kept_sum, __expf(score - p.kept_max));
          f32 const noisy = greedy ? score : __fsub_rn(score, logf(-logf(uniform(r.word[w]))));
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
  }
  if (threadIdx.x % 32 == 0) part[row * segments + segment] = p;
}
// One warp a row.
template <class L> __global__ void __launch_bounds__(32)
    sample_merge(size_t vocab, unsigned segments, L const* logits, sampling const* how, token_rules const* rules, u64 const* least,
                 sampling_part const* parts, drawn<f32>* out) {
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
  check(cudaFuncSetAttribute(detail::filter_kernel<L>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(detail::filter_shared)), "filter");
  detail::filter_kernel<L><<<static_cast<unsigned>(rows), detail::filter_threads, sizeof(detail::filter_shared), on.stream>>>(vocab, logits, how, rules, least);
  auto const run = whole_eights(vocab, logits) ? detail::sample_segments<true, L> : detail::sample_segments<false, L>;
  run<<<dim3((segments + 7) / 8, static_cast<unsigned>(rows)), 256, 0, on.stream>>>(vocab, segments, logits, how, rules, seed, counter, least, parts);
  detail::sample_merge<L><<<static_cast<unsigned>(rows), 32, 0, on.stream>>>(vocab, segments, logits, how, rules, least, parts, out);
  check_launch("sample_rows");
}
}  // namespace weft::kernels
