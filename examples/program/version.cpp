// --version of every program, also of those that have no command line: glibc hands a constructor the arguments of main. Meson links this
// file into each of them.
#include <weft/version.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string version() {  // weft, compiler, CUDA, NCCL, BLAS, instruction set: a line each
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

[[gnu::constructor]] void answer(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != std::string_view("--version")) continue;
    std::fputs(version().c_str(), stdout);
    std::fflush(stdout);
    std::_Exit(0);
  }
}

}  // namespace
