#include <program/program.hpp>

#include <weft/version.hpp>

namespace program {

std::string version() {
  std::string text = "weft " WEFT_VERSION "\ncompiler ";
#ifdef __clang__
  text += "clang " __clang_version__;
#else
  text += "g++ " __VERSION__;
#endif
  text += "\nCUDA " WEFT_WITH_CUDA "\nNCCL " WEFT_WITH_NCCL "\nBLAS " WEFT_WITH_BLAS "\ninstruction set";
#ifdef __x86_64__
  text += " x86-64";
#endif
#ifdef __AVX2__
  text += " avx2";
#endif
#ifdef __FMA__
  text += " fma";
#endif
#ifdef __AVX512F__
  text += " avx512f";
#endif
#ifdef __ARM_NEON
  text += " neon";
#endif
  return text + "\n";
}

}  // namespace program
