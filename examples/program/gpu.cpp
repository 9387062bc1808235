#include <program/gpu.hpp>

#include <weft/io/error.hpp>

#include <dlfcn.h>

#include <filesystem>

namespace program {
std::unique_ptr<gpu> open_gpu(gpu_options const& o) {
  std::error_code failed;
  auto const folder = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  void* module = nullptr;
  for (auto const& at : {folder / "weft_gpu.so", folder / "../examples/weft_gpu.so"})
    if (!module && std::filesystem::exists(at, failed)) {
      module = dlopen(at.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!module) weft::io::refuse("device=cuda: {}", dlerror());
    }
  if (!module)
    weft::io::refuse("device=cuda: this build runs on cpu ({} is not there); configure it where nvcc of the CUDA toolkit is found",
                     (folder / "weft_gpu.so").string());
  auto* const open = reinterpret_cast<gpu* (*)(gpu_options const&)>(dlsym(module, "weft_open_gpu"));
  if (!open) weft::io::refuse("device=cuda: weft_gpu.so is of another version");
  return std::unique_ptr<gpu>(open(o));
}
}  // namespace program
