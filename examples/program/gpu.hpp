// gpu.hpp — one GPU as programs see it, without CUDA's headers or libraries: the recipes that gpu.cu compiled for it lie in a module beside
// the program (weft_gpu.so), which is opened when a run asks for device=cuda. Others pay nothing for it.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <weft/step.hpp>

namespace program {
struct gpu_options {
  bool eager = false;  // nothing is captured
  std::string plans;   // file where the plans of matrix products are kept, or empty
};
struct gpu_counts {
  size_t allocations, bytes, captured, launched, uploads, downloads, waits;
};
class gpu {
 public:
  virtual ~gpu() = default;
  // The graph of that name and rl::validate beside it. Throws io::input_error for a name that is not compiled.
  virtual std::unique_ptr<weft::any_step> bind(std::string_view recipe, weft::detail::givens const&) = 0;
  virtual gpu_counts counts() const = 0;
  virtual std::string name() const = 0;
};
// Throws io::input_error where there is no module, no driver, or no GPU that would do.
std::unique_ptr<gpu> open_gpu(gpu_options const& = {});
}  // namespace program
