#!/bin/sh
# A user's program, built in one of the five ways of including weft, in a folder of its own, and run.
#   sh tests/include_ways/run.sh WAY BUILD [NVCC]     WAY: plain, pkg_config, meson, cmake_installed, cmake_subdirectory
# BUILD is a configured build folder of weft; what is installed comes from there. With NVCC a user's .cu is built too, and must need no
# library but CUDA's. Ends with 77 (skipped) where the way's own tool is not installed.
set -eu
way=$1 build=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
user=$here/user NVCC=${3:-}
export here user NVCC
tool=$(case $way in plain) echo g++ ;; pkg_config) echo pkg-config ;; meson) echo meson ;; *) echo cmake ;; esac)
command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

try() { # where weft is
  rm -rf "$scratch/work"
  mkdir "$scratch/work"
  (cd "$scratch/work" && sh "$here/$way/build.sh" "$1" >log 2>&1 && ./user) || { cat "$scratch/work/log"; echo "$way: failed with weft in $1"; exit 1; }
  [ -z "$NVCC" ] || (
    cd "$scratch/work" && ./user_cuda
    if readelf -d user_cuda | grep NEEDED | grep -vE 'lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cublasLt|cudart)\.so|ld-linux'; then
      echo "$way: user_cuda needs more than CUDA's libraries"
      exit 1
    fi
  )
}

case $way in
  pkg_config | cmake_installed)
    DESTDIR=$scratch/stage meson install -C "$build" --no-rebuild --quiet >/dev/null
    config=$(find "$scratch/stage" -name weftConfig.cmake)
    try "${config%/share/cmake/weft/weftConfig.cmake}"
    [ -f "${config%/share/*}/include/weft/kernels/cuda/gemm.cuh" ] || { echo "kernels/ is not installed"; exit 1; }
    mv "${config%/share/*}" "$scratch/moved" # the tree may be moved
    rm -rf "$scratch/stage"
    try "$scratch/moved"
    ;;
  *) try "$(dirname "$(dirname "$here")")" ;;
esac
echo "$way: works"
