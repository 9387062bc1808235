// --version of every program, also of those that have no command line: glibc hands a constructor the arguments of main. Meson links this
// file into each of them.
#include <program/version.hpp>
#include <weft/version.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace program {

std::vector<std::pair<std::string, std::string>> versions() {
#ifdef __clang__
  std::string const compiler = "clang " __clang_version__;
#else
  std::string const compiler = "g++ " __VERSION__;
#endif
  std::string set;
#ifdef __x86_64__
  set += " x86-64";
#endif
#ifdef __AVX2__
  set += " avx2";
#endif
#ifdef __FMA__
  set += " fma";
#endif
#ifdef __AVX512F__
  set += " avx512f";
#endif
#ifdef __ARM_NEON
  set += " neon";
#endif
  return {{"weft", WEFT_VERSION},   {"compiler", compiler},   {"CUDA", WEFT_WITH_CUDA},
          {"NCCL", WEFT_WITH_NCCL}, {"BLAS", WEFT_WITH_BLAS}, {"instruction set", set.empty() ? "unknown" : set.substr(1)}};
}

namespace {

[[gnu::constructor]] void answer(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != std::string_view("--version")) continue;
    for (auto const& [name, value] : versions()) std::printf("%s %s\n", name.c_str(), value.c_str());
    std::fflush(stdout);
    std::_Exit(0);
  }
}

}  // namespace
}  // namespace program
