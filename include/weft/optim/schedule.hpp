// schedule.hpp — the learning rate as a function of the step, with verl's names (verl: get_cosine_schedule_with_warmup). Steps count
// from 0, and step 0 of a warm-up has rate 0.
#pragma once
#include <cmath>
#include "../element.hpp"

namespace weft::optim {
enum class decay : i32 { constant, cosine };  // warmup_style

struct schedule {
  double lr = 1e-6;
  decay warmup_style = decay::constant;  // what follows the warm-up
  std::int64_t lr_warmup_steps = -1;     // negative: lr_warmup_steps_ratio of the total
  double lr_warmup_steps_ratio = 0;
  double min_lr_ratio = 0, num_cycles = 0.5;  // cosine only
  std::int64_t total_training_steps = 0;
};

inline std::int64_t warmup_steps(schedule const& s) {
  return s.lr_warmup_steps >= 0 ? s.lr_warmup_steps : std::int64_t(s.lr_warmup_steps_ratio * double(s.total_training_steps));
}

inline double learning_rate(schedule const& s, std::int64_t step) {
  std::int64_t const warm = warmup_steps(s);
  if (step < warm) return s.lr * double(step) / double(warm);
  if (s.warmup_style == decay::constant) return s.lr;
  std::int64_t const rest = s.total_training_steps - warm;
  double const progress = double(step - warm) / double(rest > 1 ? rest : 1);
  double const x = std::cos(3.14159265358979323846 * s.num_cycles * 2 * progress);
  double const ratio = x * (1 - s.min_lr_ratio) * 0.5 + (1 + s.min_lr_ratio) * 0.5;
  return s.lr * (ratio > s.min_lr_ratio ? ratio : s.min_lr_ratio);
}
}  // namespace weft::optim
