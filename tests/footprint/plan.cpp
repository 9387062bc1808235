// The plan's bytes are the bytes of a run, and phases of a step lie on top of each other.
#include <recipes/recipe.hpp>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <weft/kernels/cpu/threads.hpp>
#include <weft/plan.hpp>
#include "heap.hpp"
using namespace lab;

namespace {
batch_shape large() {  // 20M parameters, micro-batches of 1024 tokens
  batch_shape s;
  s.prompts = 8, s.group = 4, s.prompt_room = s.room = 64, s.updates = 1;
  s.slots = 32, s.batched_tokens = 256, s.budget = 1024;
  s.model.layers = 6, s.model.hidden = 512, s.model.intermediate = 1408, s.model.heads = 8, s.model.kv_heads = 4, s.model.head_dim = 64;
  s.model.vocab = 4096, s.model.max_positions = 128;
  return s;
}
size_t status(char const* name) {  // bytes, from this process's status
  size_t kilobytes = 0;
  std::FILE* const f = std::fopen("/proc/self/status", "r");
  for (char line[256]; f && std::fgets(line, sizeof line, f);)
    if (std::strncmp(line, name, std::strlen(name)) == 0) std::sscanf(line + std::strlen(name), ": %zu", &kilobytes);
  if (f) std::fclose(f);
  return kilobytes * 1024;
}
struct numbers {
  size_t plan, peak, tokens;
};
numbers run_step() {
  auto const shape = large();
  size_t const before = status("VmRSS");
  kernels::threads pool{2};
  auto graph = bound_to<rl::grpo<>>(cpu{{&pool}}, shape);
  fill<rl::grpo<>>(graph, shape);
  graph.step();
  numbers n{0, status("VmHWM") - before, size_t(graph.view_of<rl::loss_sums<rl::actor>>()(rl::sum_tokens))};
  for (auto const& map : memory_map(graph)) n.plan += (map.arena + map.state) * map.count;
  return n;
}
buffer_line const& find(device_map const& map, char const* port) {
  for (auto const& b : map.buffers)
    if ((" " + b.port).find(port) != std::string::npos && !b.state) return b;
  FAIL(std::string(port));
  return map.buffers[0];
}
bool overlap(buffer_line const& a, buffer_line const& b) { return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes; }
bool together(buffer_line const& a, buffer_line const& b) { return a.from <= b.to && b.from <= a.to; }
}  // namespace

TEST_CASE("the KV pool's bytes are those of activations, logits and gradients in the update") {
  auto const graph = bound_to<rl::grpo<>>(dry{}, large());
  auto const maps = memory_map(graph);
  auto const map = std::max_element(maps.begin(), maps.end(), [](auto const& a, auto const& b) { return a.arena < b.arena; });
  auto const &pool = find(*map, "kv_pool<"), &drawn = find(*map, "draw_logits<"), &activations = find(*map, "activations<"),
             &logits = find(*map, " logits<");
  CHECK(overlap(pool, activations));
  CHECK(overlap(drawn, activations));  // the rollout's logits
  CHECK(!overlap(activations, logits));
  size_t scratch = 0, rollout = 0;
  for (auto const& a : map->buffers) {
    if (a.state) continue;
    for (auto const& b : map->buffers)
      if (&a != &b && !b.state) CHECK(!(overlap(a, b) && together(a, b)));
    scratch += a.bytes;
    if (a.note.find("scratch of generate<") != std::string::npos) rollout += a.bytes;
  }
  CHECK(rollout > 100'000'000);
  CHECK(map->arena <= scratch - rollout + 256 * map->buffers.size());  // the rollout costs nothing on top of the update
  CHECK(double(map->arena) <= 1.05 * double(map->least));
}
TEST_SUITE_BEGIN("slow");
TEST_CASE("a GRPO step of 20M parameters takes at most 5 % more memory than the plan says") {
  if (!heap::counted) return;  // a sanitizer's own bytes
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  pid_t const child = ::fork();  // a process of its own: what tests before it took does not count
  REQUIRE(child >= 0);
  if (child == 0) {
    numbers const n = run_step();
    ::_exit(::write(pipe_ends[1], &n, sizeof n) == ssize_t(sizeof n) ? 0 : 1);
  }
  numbers n{};
  ::close(pipe_ends[1]);
  CHECK(::read(pipe_ends[0], &n, sizeof n) == ssize_t(sizeof n));
  ::close(pipe_ends[0]);
  int how = 0;
  ::waitpid(child, &how, 0);
  REQUIRE(how == 0);
  MESSAGE("plan " << n.plan << " bytes, peak " << n.peak << ", " << n.tokens << " tokens trained");
  CHECK(n.tokens > 500);
  CHECK(double(n.peak) <= 1.05 * double(n.plan));
  CHECK(double(n.peak) >= 0.85 * double(n.plan));
}
TEST_SUITE_END();
