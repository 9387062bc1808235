// initialise.hpp — weights to start training from: every matrix normal(0, 0.02), as transformers does by default, norms 1, biases and the
// gaps of the arena 0. A function of seed, tensor and element: neither of the order of computing nor of the layout.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include <weft/kernels/philox.hpp>
#include <weft/model/layout.hpp>

namespace weft::model {
// Two standard normals from two random words (Box and Muller, 1958).
struct normal_pair {
  double first, second;
};
inline normal_pair box_muller(u32 a, u32 b) {
  double const radius = std::sqrt(-2 * std::log(double(kernels::uniform(a)))), angle = 2 * std::numbers::pi * double(kernels::uniform(b));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

inline constexpr double initial_deviation = 0.02;
inline constexpr u32 no_draw =
    ~u32{0};  // a draw number that no prompt has: these numbers are never drawn again by sampling with the same seed

// weights: [parameter_count(config)]
template <class T> void initialise(config const& c, u64 seed, T* weights) {
  std::fill_n(weights, parameter_count(c), T(0));
  u32 ordinal = 0;
  for_each_tensor(c, [&](tensor const& t) {
    T* const w = weights + t.offset;
    u32 const which = ordinal++;
    if (std::string_view(t.name).ends_with("bias")) return;
    if (t.cols == 0) return void(std::fill_n(w, t.rows, T(1)));
    for (size_t i = 0; i < t.size(); i += 4) {
      u64 const block = i / 4;
      auto const r = kernels::philox({{u32(block), u32(block >> 32), which, no_draw}}, seed);
      normal_pair const a = box_muller(r.word[0], r.word[1]), b = box_muller(r.word[2], r.word[3]);
      double const four[] = {a.first, a.second, b.first, b.second};
      for (size_t k = 0; k < std::min(size_t(4), t.size() - i); ++k) w[i + k] = T(initial_deviation * four[k]);
    }
  });
}
}  // namespace weft::model
