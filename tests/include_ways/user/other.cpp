#include "graph.hpp"

#include <weft/train/knobs.hpp>

double other_unit() {
  weft::train::options o;
  weft::train::knobs(o).assign("rollout.n=4", "the other unit");
  return doubled_sum(2 + std::size_t(o.rollout.n));
}
