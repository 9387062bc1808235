// version.hpp — the version of these headers. meson.build reads it from here.
#pragma once

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION "0.1.0"

#if defined(__cplusplus) && __cplusplus < 202002L
#error "weft needs C++20: compile with -std=c++20 or later"
#endif
