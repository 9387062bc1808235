// head.cuh — the language-model head: log-probs and entropy, and the gradient of any loss of them, in chunks of rows; see head.hpp.
//
// The loss is a functor called on the device: (size_t row, f32 log_prob, f32 entropy) -> token_gradient<f32>. Logits are bf16 or f32; their
// gradient is bf16 and lies in their place (f32: in the first half of the row). A target below 0 stands for no token: log-prob and entropy
// 0, no gradient. hidden and dhidden hold gemm_rows of the rows of their last chunk, logits gemm_rows(chunk).
#pragma once
#include <weft/kernels/cuda/gemm.cuh>
#include <weft/kernels/cuda/softmax.cuh>
#include <weft/kernels/head.hpp>

namespace weft::kernels {
namespace detail {
struct no_loss {};
// One block with a loss fills a multiprocessor: its row is still in the second-level cache when the gradient reads it again.
template <class Loss> inline constexpr unsigned head_threads = std::is_same_v<Loss, no_loss> ? 512 : 1024;

// Block r: row r of the chunk. first: number of the chunk's first row.
template <bool whole, class L, class Loss> __global__ void __launch_bounds__(head_threads<Loss>, 1024 / head_threads<Loss>)
    head_kernel(size_t first, size_t vocab, L* logits /*[rows, vocab]*/, i32 const* targets, f32 const* inverse_temperature, Loss loss,
                f32* log_prob, f32* entropy) {
  __shared__ softmax_part part[most_segments];
  __shared__ softmax_sums<f32> shared_sums;
  __shared__ token_gradient<f32> shared_d;
  size_t const row = first + blockIdx.x;
  L* const x = logits + blockIdx.x * vocab;
  i32 const target = targets[row];
  f32 const it = inverse_temperature[row];
  if (target >= 0) {
    unsigned const segments = static_cast<unsigned>((vocab + segment_ids - 1) / segment_ids);
    for (unsigned s = threadIdx.x / 32; s < segments; s += head_threads<Loss> / 32) {
      eight v[4];
      load_segment<whole>(x, vocab, s, v);
      softmax_part const p = softmax_segment(v, ids_in_segment(vocab, s), it);
      if (threadIdx.x % 32 == 0) part[s] = p;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      softmax_sums<f32> const sums = softmax_merge([&](unsigned s) { return part[s]; }, segments, it);
      if (threadIdx.x == 0) {
        f32 const l = log_prob_of_logit(sums, to_f32(x[target]), it);
        log_prob[row] = l;
        entropy[row] = sums.entropy;
        if constexpr (!std::is_same_v<Loss, no_loss>) shared_sums = sums, shared_d = loss(row, l, sums.entropy);
      }
    }
  } else if (threadIdx.x == 0) {
    log_prob[row] = 0, entropy[row] = 0;
    shared_d = {0, 0};
  }
  if constexpr (!std::is_same_v<Loss, no_loss>) {
    // with l = log p: d log p_t / d logit_j = it (1[j = t] - p_j) and dH / d logit_j = -it p_j (l_j + H)
    __syncthreads();
    softmax_sums<f32> const sums = shared_sums;
    token_gradient<f32> const d = shared_d;
    bool const none = d.log_prob == 0 && d.entropy == 0;  // a row that does not count, even one of NaN
    bf16* const dx = reinterpret_cast<bf16*>(x);
    for (size_t base = 0; base < vocab; base += 8 * head_threads<Loss>) {
      size_t const i = base + 8 * threadIdx.x;
      eight v = {};
      if (!none && i < vocab) {
        v = load8<whole>(x, i, vocab);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          f32 const l = __fmaf_rn(v.at[e] - sums.max, it, -sums.log_sum),
                    g = -it * exp_fast(l) * __fmaf_rn(d.entropy, l + sums.entropy, d.log_prob);
          v.at[e] = i + e == static_cast<size_t>(target) ? __fmaf_rn(it, d.log_prob, g) : g;
        }
      }
      if constexpr (sizeof(L) > sizeof(bf16)) __syncthreads();  // the gradient overwrites logits that other threads read in this turn
      store8<whole>(dx, i, vocab, v);
    }
  }
}
template <class L, class Loss> void head_chunk(cuda_context& on, size_t first, size_t rows, size_t vocab, L* logits, i32 const* targets,
                                               f32 const* inverse_temperature, Loss const& loss, f32* log_prob, f32* entropy) {
  (void)segments_of(vocab);
  auto const run = whole_eights(vocab, logits) ? head_kernel<true, L, Loss> : head_kernel<false, L, Loss>;
  run<<<static_cast<unsigned>(rows), head_threads<Loss>, 0, on.stream>>>(first, vocab, logits, targets, inverse_temperature, loss, log_prob,
                                                                         entropy);
  check_launch("head");
}
}  // namespace detail

// Rows of logits that are there already: log-probs and entropy.
template <class L> void softmax_rows(cuda_context& on, size_t rows, size_t vocab, L* logits /*[rows, vocab], kept*/, i32 const* targets,
                                     f32 const* inverse_temperature, f32* log_prob, f32* entropy) {
  if (rows) detail::head_chunk(on, 0, rows, vocab, logits, targets, inverse_temperature, detail::no_loss{}, log_prob, entropy);
}
template <class L> void head_log_probs(cuda_context& on, size_t rows, size_t width, size_t vocab, bf16 const* hidden /*[rows, width]*/,
                                       bf16 const* weight /*[vocab, width]*/, i32 const* targets /*[rows]*/,
                                       f32 const* inverse_temperature /*[rows]*/, size_t chunk, L* logits /*scratch [chunk, vocab]*/,
                                       f32* log_prob /*[rows]*/, f32* entropy /*[rows]*/) {
  for (size_t first = 0; first < rows; first += chunk) {
    size_t const count = rows - first < chunk ? rows - first : chunk;
    gemm_nt(on, count, vocab, width, hidden + first * width, width, weight, width, logits, vocab, false);
    detail::head_chunk(on, first, count, vocab, logits, targets, inverse_temperature, detail::no_loss{}, log_prob, entropy);
  }
}
template <class L, class Loss> void head_loss(cuda_context& on, size_t rows, size_t width, size_t vocab, bf16 const* hidden,
                                              bf16 const* weight, i32 const* targets, f32 const* inverse_temperature, size_t chunk,
                                              L* logits /*scratch [chunk, vocab]*/, Loss const& loss, f32* log_prob, f32* entropy,
                                              bf16* dhidden /*[rows, width], written*/, f32* dweight /*[vocab, width], added*/) {
  size_t const ld = vocab * sizeof(L) / sizeof(bf16);
  bf16 const* const dlogits = reinterpret_cast<bf16 const*>(logits);
  for (size_t first = 0; first < rows; first += chunk) {
    size_t const count = rows - first < chunk ? rows - first : chunk;
    gemm_nt(on, count, vocab, width, hidden + first * width, width, weight, width, logits, vocab, false);
    detail::head_chunk(on, first, count, vocab, logits, targets, inverse_temperature, loss, log_prob, entropy);
    gemm_nn(on, count, width, vocab, dlogits, ld, weight, width, dhidden + first * width, width, false);
    gemm_tn(on, vocab, width, count, dlogits, ld, hidden + first * width, width, dweight, width, true);
  }
}
}  // namespace weft::kernels
