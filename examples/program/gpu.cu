// gpu.cu — the recipes on one GPU: the module that gpu.cpp opens.
#include <program/gpu_recipes.hpp>

#include <program/gpu.hpp>

using namespace weft;

namespace {
class here final : public program::gpu {
 public:
  explicit here(program::gpu_options const& o) : device_{cuda_options{.eager = o.eager, .plans = o.plans}} {}
  std::unique_ptr<any_step> bind(std::string_view recipe, detail::givens const& given) override {
    struct {
      char const* name;
      program::bound_on_gpu (*bind)(cuda const&, detail::givens const&);
    } const all[] = {{"sft", program::gpu_sft},           {"grpo", program::gpu_grpo},
                     {"grpo_fp8", program::gpu_grpo_fp8}, {"grpo_with_reference", program::gpu_grpo_with_reference},
                     {"ppo", program::gpu_ppo},           {"ppo_with_reference", program::gpu_ppo_with_reference}};
    std::string names;
    for (auto const& one : all) {
      if (recipe == one.name) return one.bind(cuda{device_}, given);
      names += std::string(names.empty() ? "" : ", ") + one.name;
    }
    throw io::input_error("device=cuda: recipe " + std::string(recipe) + " is not compiled for it; there are " + names);
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
