// rope_table.hpp — the angles of rotary positions, scaled as Hugging Face's modeling_rope_utils defines linear, llama3 and yarn; computed
// in double, rounded once.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>

#include <weft/model/config.hpp>

namespace weft::model {
namespace detail {
// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between are blended.
inline double llama3_frequency(rope_scaling const& r, double original, double frequency) {
  double const turns = original * frequency / (2 * std::numbers::pi);  // within the original context
  if (turns > double(r.high_freq_factor)) return frequency;
  if (turns < double(r.low_freq_factor)) return frequency / double(r.factor);
  double const keep = (turns - double(r.low_freq_factor)) / (double(r.high_freq_factor) - double(r.low_freq_factor));
  return (1 - keep) * frequency / double(r.factor) + keep * frequency;
}

// YaRN (arXiv 2309.00071, section 3.2): a ramp over the dimensions between those that turn beta_fast and beta_slow times within the
// original context.
inline double yarn_frequency(config const& c, double original, i32 pair, double frequency) {
  rope_scaling const& r = c.rope;
  auto const dimension = [&](double turns) {
    return double(c.head_dim) * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(double(c.rope_theta)));
  };
  double low = dimension(double(r.beta_fast)), high = dimension(double(r.beta_slow));
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, double(c.head_dim - 1));
  if (low == high) high += 0.001;
  double const stretched = std::clamp((double(pair) - low) / (high - low), 0.0, 1.0);
  return frequency / double(r.factor) * stretched + frequency * (1 - stretched);
}
}  // namespace detail

// Radians per position of a pair of dimensions, pair in [0, head_dim / 2).
inline double rope_frequency(config const& c, i32 pair) {
  double const frequency = std::pow(double(c.rope_theta), -2.0 * double(pair) / double(c.head_dim));
  double const original = double(c.rope.original_max_positions > 0 ? c.rope.original_max_positions : c.max_positions);
  switch (c.rope.type) {
    case rope_scaling::none:
      return frequency;
    case rope_scaling::linear:
      return frequency / double(c.rope.factor);
    case rope_scaling::llama3:
      return detail::llama3_frequency(c.rope, original, frequency);
    case rope_scaling::yarn:
      return detail::yarn_frequency(c, original, pair, frequency);
  }
  return frequency;
}

// What cos and sin are multiplied by: 1, but for yarn.
inline double rope_attention_factor(rope_scaling const& r) {
  if (r.type != rope_scaling::yarn) return 1;
  if (r.attention_factor > 0) return double(r.attention_factor);
  auto const scale = [&](double m) { return r.factor <= 1 ? 1.0 : 0.1 * m * std::log(double(r.factor)) + 1.0; };
  return r.mscale != 0 && r.mscale_all_dim != 0 ? scale(double(r.mscale)) / scale(double(r.mscale_all_dim)) : scale(1);
}

// table [positions, head_dim]: the cosines of the head_dim / 2 angles of a position, then their sines.
template <class T> void fill_rope_table(config const& c, size_t positions, T* table) {
  size_t const pairs = size_t(c.head_dim) / 2;
  double const factor = rope_attention_factor(c.rope);
  for (size_t i = 0; i < pairs; ++i) {
    double const frequency = rope_frequency(c, i32(i));
    for (size_t p = 0; p < positions; ++p) {
      T* const row = table + p * 2 * pairs;
      row[i] = T(std::cos(double(p) * frequency) * factor);
      row[pairs + i] = T(std::sin(double(p) * frequency) * factor);
    }
  }
}
}  // namespace weft::model
