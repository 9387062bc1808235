// adamw.hpp (cpu)
#pragma once
#include <weft/kernels/adamw.hpp>
#include <weft/kernels/cpu/math.hpp>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/kernels/philox.hpp>
#include <cstddef>

namespace weft::kernels {
template <class T> void adamw(cpu_context& on, size_t n, T* w, T* m, T* v, T const* g, adamw_step const& step, T gradient_scale) {
  T const keep = static_cast<T>(1 - step.lr * step.weight_decay), rate = static_cast<T>(step.lr / (1 - std::pow(step.beta1, step.step)));
  T const root = static_cast<T>(1 / std::sqrt(1 - std::pow(step.beta2, step.step))), eps = static_cast<T>(step.eps);
  T const beta1 = static_cast<T>(step.beta1), rest1 = static_cast<T>(1 - step.beta1), beta2 = static_cast<T>(step.beta2),
          rest2 = static_cast<T>(1 - step.beta2);
  parallel_for(on, n, 1 << 13, [=](size_t begin, size_t end) {
    each_vector<T>(end - begin, [=](size_t offset, auto at) {
      size_t const i = begin + offset;
      vec<T> const d = at.load(g + i) * broadcast(gradient_scale);
      vec<T> const mean = fma(at.load(m + i), broadcast(beta1), d * broadcast(rest1));
      vec<T> const square = fma(at.load(v + i), broadcast(beta2), d * d * broadcast(rest2));
      vec<T> const change = broadcast(rate) * (mean / fma(sqrt(square), broadcast(root), broadcast(eps)));
      at.store(m + i, mean);
      at.store(v + i, square);
      at.store(w + i, fma(at.load(w + i), broadcast(keep), -change));
    });
  });
}
template <class T> double sum_of_squares(cpu_context& on, size_t n, T const* x) {
  constexpr size_t leaves = 256, width = 16;
  size_t const leaf = ((n + leaves - 1) / leaves + width - 1) / width * width;
  double part[leaves];
  parallel_for(on, leaves, 8, [&](size_t begin, size_t end) {
    for (size_t l = begin; l < end; ++l) {
      double lane[width] = {};
      size_t const last = (l + 1) * leaf < n ? (l + 1) * leaf : n;
      size_t i = l * leaf;
      for (; i + width <= last; i += width)
        for (size_t j = 0; j < width; ++j) lane[j] = fma(static_cast<double>(x[i + j]), static_cast<double>(x[i + j]), lane[j]);
      for (; i < last; ++i) lane[i % width] = fma(static_cast<double>(x[i]), static_cast<double>(x[i]), lane[i % width]);
      part[l] = 0;
      for (double s : lane) part[l] += s;
    }
  });
  double sum = 0;
  for (double p : part) sum += p;
  return sum;
}
namespace detail {
// One block of 256, with moments of few bits: wide, stepped as they are wide, and narrow again.
template <class T> void adamw_block(size_t block, size_t n, moment_format format, T* w, std::byte* moments, T const* g, adamw_step const& step,
                                    T gradient_scale) {
  moment_layout const l = moment_layout_of(format, n);
  size_t const first = block * moment_block, count = n - first < moment_block ? n - first : moment_block;
  auto* const m16 = reinterpret_cast<bf16*>(moments) + first;
  auto* const v16 = reinterpret_cast<bf16*>(moments + l.second) + first;
  auto* const m8 = reinterpret_cast<std::uint8_t*>(moments) + first;
  auto* const v8 = reinterpret_cast<std::uint8_t*>(moments + l.second) + first;
  auto* const m_scale = reinterpret_cast<f32*>(moments + l.first_scales) + block;
  auto* const v_scale = reinterpret_cast<f32*>(moments + l.second_scales) + block;
  bool const f8 = format == moment_format::f8;
  T m[moment_block], v[moment_block];
  for (size_t i = 0; i < count; ++i) {
    f32 const x = f8 ? (m8[i] & 128 ? -1 : 1) * decoded<4>(m8[i] & 127u) * *m_scale : float_of(u32{m16[i].bits} << 16);
    f32 const y = f8 ? decoded<5>(v8[i]) * *v_scale : float_of(u32{v16[i].bits} << 16);
    m[i] = static_cast<T>(x), v[i] = static_cast<T>(y);
  }
  cpu_context alone;
  adamw(alone, count, w + first, m, v, g + first, step, gradient_scale);
  f32 most_m = 0, most_v = 0;
  for (size_t i = 0; i < count; ++i) {
    most_m = std::fmax(most_m, static_cast<f32>(std::abs(m[i])));
    most_v = std::fmax(most_v, static_cast<f32>(v[i]));
  }
  if (f8) *m_scale = most_m, *v_scale = most_v;
  for (size_t i = 0; i < count; ++i) {
    size_t const eight = (first + i) / 8;
    philox_words const r = philox({{static_cast<u32>(eight), static_cast<u32>(eight >> 32), static_cast<u32>(step.step), i % 8 / 4 != 0}}, 0);
    u32 const random = r.word[i % 4], low = random & 0xffff, high = random >> 16;
    f32 const x = static_cast<f32>(m[i]), y = static_cast<f32>(v[i]);
    if (f8) {
      m8[i] = static_cast<std::uint8_t>(most_m > 0 ? encoded<4>(std::fabs(x) / most_m, low) | (x < 0 ? 128u : 0u) : 0);
      v8[i] = static_cast<std::uint8_t>(most_v > 0 ? encoded<5>(y / most_v, high) : 0);
    } else {
      m16[i] = to_bf16_stochastic(x, low), v16[i] = to_bf16_stochastic(y, high);
    }
  }
}
}  // namespace detail
template <class T> void clipped_adamw(cpu_context& on, size_t n, adamw_options const& o, T const* g, i32 const* counted, f32 const* lr,
                                      T* w, T* /*master*/, void* moments, i32* steps, f32* norm) {
  double const size = std::sqrt(sum_of_squares(on, n, g));
  *norm = static_cast<f32>(size);
  if (*counted == 0 || !(size - size == 0)) return;
  ++*steps;
  adamw_step const step{static_cast<double>(*lr), o.beta1, o.beta2, o.eps, o.weight_decay, *steps};
  T const scale = static_cast<T>(clip_coefficient(size, o.clip_grad));
  auto* const at = static_cast<std::byte*>(moments);
  moment_layout const l = moment_layout_of(o.moments, n);
  if (o.moments == moment_format::f32) return adamw(on, n, w, reinterpret_cast<T*>(at), reinterpret_cast<T*>(at + l.second), g, step, scale);
  parallel_for(on, (n + moment_block - 1) / moment_block, 32, [=](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) detail::adamw_block(b, n, o.moments, w, at, g, step, scale);
  });
}
}  // namespace weft::kernels
