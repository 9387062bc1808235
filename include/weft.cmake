# weft.cmake — the targets of weft, the same for find_package and for add_subdirectory. weft_include is the folder of the headers.
# weft::weft needs fmt and threads; with PCRE2 and utf8proc, where pkg-config finds them, it also has tokenizers with merges.
# weft::cuda is for .cu files: headers and CUDA's libraries only; CUDAToolkit is looked for by who asks for it, after enable_language(CUDA).
if(NOT TARGET weft::headers)
  add_library(weft::headers INTERFACE IMPORTED GLOBAL)
  set_target_properties(weft::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${weft_include}")
  # products are never fused with sums behind the source's back: log-probs of sampling and training stay equal bit for bit
  target_compile_options(weft::headers INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -ffp-contract=off --expt-relaxed-constexpr>")

  add_library(weft::weft INTERFACE IMPORTED GLOBAL)
  target_compile_features(weft::weft INTERFACE cxx_std_20)
  target_link_libraries(weft::weft INTERFACE weft::headers fmt::fmt Threads::Threads)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(weft_tokenizer QUIET IMPORTED_TARGET GLOBAL libpcre2-8 libutf8proc)
  endif()
  if(weft_tokenizer_FOUND)
    target_compile_definitions(weft::weft INTERFACE WEFT_TOKENIZER)
    target_link_libraries(weft::weft INTERFACE PkgConfig::weft_tokenizer)
  endif()
endif()
if(CUDAToolkit_FOUND AND NOT TARGET weft::cuda)
  add_library(weft::cuda INTERFACE IMPORTED GLOBAL)
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(weft::cuda INTERFACE cuda_std_20)
  else()  # CMake 3.25 does not know that nvcc does
    target_compile_options(weft::cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
  target_link_libraries(weft::cuda INTERFACE weft::headers CUDA::cublasLt CUDA::cudart_static)
endif()
