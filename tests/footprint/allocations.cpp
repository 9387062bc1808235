// After the first step nothing is allocated: all that a step needs lies in the arena.
#include <recipes/recipe.hpp>
#include <cstdlib>
#include <weft/kernels/cpu/threads.hpp>
#include "heap.hpp"
using namespace lab;

namespace {
template <class Graph> void steps_without_heap(batch_shape const& shape) {
  kernels::threads pool{2};
  auto graph = bound_to<Graph>(cpu{{&pool}}, shape);
  fill<Graph>(graph, shape);
  graph.step();
  size_t const before = heap::requests();
  for (int i = 0; i < 3; ++i) graph.step();
  CHECK(heap::requests() == before);
  graph.executor().poison = true;
  graph.step();
  CHECK(heap::requests() == before);
}
}  // namespace
TEST_CASE("what is counted: new, arrays, aligned memory and malloc") {
  if (!heap::counted) return;
  size_t const before = heap::requests();
  delete new int;
  delete[] new char[100];
  ::operator delete (::operator new (64, std::align_val_t{256}), std::align_val_t{256});
  void* volatile p = std::malloc(10);
  std::free(p);
  CHECK(heap::requests() >= before + 2);  // a compiler may leave new and delete of nothing out
}
TEST_CASE_TEMPLATE("a step allocates nothing", Graph, rl::grpo<>, rl::grpo_with_reference<>, rl::ppo<>, rl::ppo_with_reference<>,
                   rl::sft<>) {
  batch_shape shape;
  shape.updates = 1;
  steps_without_heap<Graph>(shape);
  shape.updates = 3;
  shape.slots = 3, shape.pages = 3, shape.budget = 9;  // slots refill, sequences are preempted, micro-batches of one
  steps_without_heap<Graph>(shape);
}
TEST_CASE("nor over several devices, with moves") {
  batch_shape shape;
  shape.devices = 3;
  steps_without_heap<rl::grpo<rl::policy_objective, rollout_pool, trainer_pool>>(shape);
}
