// sampling_filter.cuh — which ids of a row top_k, top_p and min_p keep, without a sort.
//
// Ids are ordered by (score, smaller id first) as one integer, the rank; the least kept rank is found by bisection, first over the row, then
// over a list in shared memory. Masses are integers, so that no order of sums matters.
#pragma once
#include <weft/kernels/cuda/chain.cuh>
#include <weft/kernels/cuda/vector.cuh>
#include <weft/kernels/sampling.hpp>

namespace weft::kernels::detail {
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
__device__ inline u64 mass_of(f32 score, f32 best) { return __float2ull_rn(exp_fast(score - best) * 0x1p40f); }

inline constexpr unsigned filter_threads = 1024, filter_room = 8192;
inline constexpr int filter_cuts = 4;
struct filter_sums {
  u64 count, mass;
};
struct filter_shared {
  u64 sum[2], most;
  filter_sums cut[filter_cuts + 1];
  unsigned listed;
  u64 list[filter_room];
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
template <bool whole, class L, class F> __device__ void each_rank(L const* x, size_t vocab, f32 it, token_rules const& rules, F const& f) {
  for (size_t id = 8 * threadIdx.x; id < vocab; id += 8 * filter_threads) {
    eight const v = load8<whole>(x, id, vocab, minus_infinity);
#pragma unroll
    for (unsigned e = 0; e < 8; ++e)
      if (f32 const score = token_score(v.at[e], static_cast<unsigned>(id) + e, it, rules); score > minus_infinity)
        f(rank_of(score, static_cast<unsigned>(id) + e));
  }
}
// Ranks from `low` on are enough, those from high + 1 on are not.
struct filter_bracket {
  u64 low, high;
  filter_sums from_low, above;  // of the ranks from low on, and from high + 1 on
};
// Narrows the bracket until one rank is left in it: first over the row, then over a list of the ranks in the bracket.
template <class InRow, class Enough>
__device__ filter_bracket bisect(filter_shared& shared, filter_bracket b, f32 best, InRow const& in_row, Enough const& enough) {
  auto const halve = [&](auto const& each, filter_sums base) {
    u64 const middle = b.low + (b.high - b.low + 1) / 2;
    u64 count = 0, mass = 0;
    each([&](u64 rank) {
      if (rank >= middle) ++count, mass += mass_of(score_of_rank(rank), best);
    });
    filter_sums const t = filter_total(shared, count, mass), s{base.count + t.count, base.mass + t.mass};
    if (enough(s)) b.low = middle, b.from_low = s;
    else b.high = middle - 1, b.above = s;
  };
  auto const open = [&](u64 ranks) { return b.low < b.high && b.from_low.count - b.above.count > ranks; };
  while (open(filter_room)) halve(in_row, filter_sums{0, 0});
  if (open(1)) {
    __syncthreads();
    if (threadIdx.x == 0) shared.listed = 0;
    __syncthreads();
    in_row([&](u64 rank) {
      if (rank >= b.low && rank <= b.high) shared.list[atomicAdd(&shared.listed, 1u)] = rank;
    });
    __syncthreads();
    unsigned const n = shared.listed;
    filter_sums const base = b.above;
    while (open(1))
      halve(
          [&](auto const& f) {
            for (unsigned i = threadIdx.x; i < n; i += filter_threads) f(shared.list[i]);
          },
          base);
  }
  return b;
}
// least[row] = the least rank that is kept; 0 for rows without filters
template <bool whole, class L> __global__ void __launch_bounds__(filter_threads)
    filter_kernel(size_t vocab, L const* logits, sampling const* how, token_rules const* rules, u64* least) {
  next_may_start();
  wait_for_previous();
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
  auto const in_row = [&](auto const& f) { each_rank<whole>(x, vocab, it, rule, f); };

  u64 most = 0;
  in_row([&](u64 rank) { most = rank > most ? rank : most; });
  if (threadIdx.x == 0) shared.most = 0;
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

  u64 const floor = s.min_p > 0 ? u64{ordered(best + logf(s.min_p))} << id_bits : 0;
  u64 low = 0;
  if (s.top_k >= 1 || s.top_p < 1) {
    // how many ids, and how much mass, lie within 2, 4, 8, 16 of the best score: the bracket to begin with
    constexpr int cuts = filter_cuts;
    u32 count[cuts + 1] = {};
    u64 mass[cuts + 1] = {};
    in_row([&](u64 rank) {
      u64 const m = mass_of(score_of_rank(rank), best);
#pragma unroll
      for (int c = 0; c <= cuts; ++c)
        if (c == cuts || rank >= u64{ordered(best - static_cast<f32>(2 << c))} << id_bits) ++count[c], mass[c] += m;
    });
    filter_sums* const total = shared.cut;
#pragma unroll
    for (int c = 0; c <= cuts; ++c)
      if (filter_sums const t = filter_total(shared, count[c], mass[c]); threadIdx.x == 0) total[c] = t;
    __syncthreads();
    auto const bracket = [&](auto const& enough) {
      filter_bracket b{0, most, total[cuts], {0, 0}};
#pragma unroll 1
      for (int c = 0; c < cuts; ++c) {  // nearest to the best first: the first that is enough ends it
        u64 const edge = u64{ordered(best - static_cast<f32>(2 << c))} << id_bits;
        if (b.low) continue;
        if (enough(total[c])) b.low = edge, b.from_low = total[c];
        else b.high = edge - 1, b.above = total[c];
      }
      return b;
    };
    filter_sums of = total[cuts];
    if (s.top_k >= 1 && static_cast<u64>(s.top_k) < of.count) {
      auto const enough = [&](filter_sums const& x) { return x.count >= static_cast<u64>(s.top_k); };
      filter_bracket const b = bisect(shared, bracket(enough), best, in_row, enough);
      low = b.low, of = b.from_low;
    }
    if (s.top_p < 1) {
      u64 const needed = static_cast<u64>(::ceil(static_cast<double>(s.top_p) * static_cast<double>(of.mass)));
      auto const enough = [&](filter_sums const& x) { return x.mass >= needed; };
      filter_bracket b = bracket(enough);
      if (low > b.low) b.low = low, b.from_low = of;  // within the top_k
      low = bisect(shared, b, best, in_row, enough).low;
    }
  }
  if (threadIdx.x == 0) least[row] = low > floor ? low : floor;
}
}  // namespace weft::kernels::detail
