// gpu.cu — the recipes on one GPU: the module that gpu.cpp opens.
#include <weft/engine/cuda.hpp>

#include <weft/recipes/grpo.hpp>
#include <weft/recipes/ppo.hpp>
#include <weft/recipes/sft.hpp>
#include <weft/recipes/validate.hpp>

#include <program/gpu.hpp>

using namespace weft;

namespace {
class here final : public program::gpu {
 public:
  explicit here(program::gpu_options const& o)
      : device_{cuda_options{.eager = o.eager, .plans = o.plans, .most_bytes = o.most_bytes}} {}
  std::unique_ptr<any_step> bind(std::string_view recipe, detail::givens const& given) override {
    cuda const on{device_};
    if (recipe == "sft") return make_step_from<rl::sft<>, rl::validate>(on, given);
    if (recipe == "grpo") return make_step_from<rl::grpo<>, rl::validate>(on, given);
    if (recipe == "ppo") return make_step_from<rl::ppo<>, rl::validate>(on, given);
    throw io::input_error("device=cuda: recipe " + std::string(recipe) + " is not compiled for it; there are sft, grpo, ppo");
  }
  program::gpu_counts counts() const override {
    auto const& c = device_.counts;
    return {c.allocations, c.bytes, device_.graphs().captured, device_.graphs().launched, c.uploads, c.downloads, c.waits};
  }
  std::string name() const override { return device_.properties().name; }

 private:
  cuda_device device_;
};
}  // namespace

extern "C" __attribute__((visibility("default"))) program::gpu* weft_open_gpu(program::gpu_options const& o) { return new here(o); }
