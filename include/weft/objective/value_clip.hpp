// value_clip.hpp — the critic's loss: 1/2 max((v - R)^2, (clip(v, V_old +- range) - R)^2). verl's cliprange_value is 0.5, TRL's 0.2.
#pragma once
#include "term.hpp"

namespace weft::objective {
struct value_clip : token_term<response, values> {
  static constexpr char const* name = "critic/vf_loss";
  double cliprange_value = 0.5;

  template <class T> WEFT_HD value_loss<T> operator()(prediction<T> const& p, sequence<T> const&) const {
    T const free = p.value - p.target, bound = clipped(p) - p.target;
    return bound * bound > free * free ? value_loss<T>{bound * bound / 2, T(0)} : value_loss<T>{free * free / 2, free};
  }

  static constexpr char const* metrics[] = {"critic/vf_clipfrac", "critic/vpred_mean"};
  template <class T> WEFT_HD void measure(prediction<T> const& p, sequence<T> const&, double* sums) const {
    T const free = p.value - p.target, bound = clipped(p) - p.target;
    sums[0] += bound * bound > free * free;
    sums[1] += double(p.value);
  }

  template <class T> WEFT_HD T clipped(prediction<T> const& p) const {
    return clamp(p.value, p.old_value - T(cliprange_value), p.old_value + T(cliprange_value));
  }
};
}  // namespace weft::objective
