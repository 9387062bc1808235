// kl.hpp — estimators of KL(policy || reference) from one sample, d = ref - lp (http://joschu.net/blog/kl-approx.html), with
// verl's clamps: d of k3 to +-20, k3 itself to +-10, and no gradient once a clamp is active.
#pragma once
#include "term.hpp"

namespace weft::objective {
enum class kl_estimator : i32 {
  k1,        // -d
  abs,       // |d|
  k2,        // d^2 / 2
  k3,        // e^d - d - 1
  k1_plus,   // value of k1, gradient of k2
  k3_plus,   // value of k3, gradient of k2
  unbiased,  // value of k3; the gradient also has the score term: that of exp(lp - sg(lp)) k3
};
struct kl_estimator_name {
  char const* name;
  kl_estimator estimator;
};
inline constexpr kl_estimator_name kl_estimator_names[] = {
    // what users type: kl_loss_type, kl_penalty
    {"kl", kl_estimator::k1},         {"k1", kl_estimator::k1},
    {"abs", kl_estimator::abs},       {"k2", kl_estimator::k2},
    {"mse", kl_estimator::k2},        {"k3", kl_estimator::k3},
    {"low_var_kl", kl_estimator::k3}, {"k1+", kl_estimator::k1_plus},
    {"k3+", kl_estimator::k3_plus},   {"unbiased", kl_estimator::unbiased},
};

template <class T> struct kl_value { T value, log_prob; };  // the estimate, and its derivative in lp

template <class T> WEFT_HD kl_value<T> k3(T d) {
  T const inside = clamp<T>(d, -20, 20), e = std::exp(inside), value = e - inside - 1;
  if (value > 10) return {T(10), T(0)};
  return {value, inside == d ? 1 - e : T(0)};
}

// Value and derivative at `log_prob`. With `detached` = log_prob these are the estimator's; finite differences move log_prob alone.
template <class T> WEFT_HD kl_value<T> kl_of(kl_estimator estimator, T log_prob, T detached, T ref) {
  T const d = ref - log_prob, fixed = ref - detached, k2_moved = (d * d - fixed * fixed) / 2;
  switch (estimator) {
    case kl_estimator::k1:
      return {-d, T(1)};
    case kl_estimator::abs:
      return {d < 0 ? -d : d, d > 0 ? T(-1) : d < 0 ? T(1) : T(0)};
    case kl_estimator::k2:
      return {d * d / 2, -d};
    case kl_estimator::k3:
      return k3(d);
    case kl_estimator::k1_plus:
      return {-fixed + k2_moved, -d};
    case kl_estimator::k3_plus:
      return {k3(fixed).value + k2_moved, -d};
    case kl_estimator::unbiased: {
      auto const k = k3(d);
      bool const inside = d >= -20 && d <= 20;  // the weight is detached where d is clamped
      T const w = inside ? std::exp(log_prob - detached) : T(1);
      return {w * k.value, w * (k.log_prob + (inside ? k.value : T(0)))};
    }
  }
  return {};
}

struct kl : token_term<> {  // weight: kl_loss_coef
  static constexpr char const* name = "actor/kl_loss";
  kl_estimator estimator = kl_estimator::k3;
  template <class T> WEFT_HD token_loss<T> operator()(token<T> const& t, sequence<T> const&) const {
    auto const k = kl_of(estimator, t.log_prob, t.detached, t.ref_log_prob);
    return {k.value, k.log_prob, 0};
  }
};
}  // namespace weft::objective
