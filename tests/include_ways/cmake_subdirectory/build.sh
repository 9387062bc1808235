# weft's tree lies beside the user's: add_subdirectory, or FetchContent with SOURCE_SUBDIR include.
set -e
cmake -S "$here/cmake_subdirectory" -B out -Dweft="$1" -DWEFT_CUDA="$([ -n "${NVCC:-}" ] && echo ON || echo OFF)" ${NVCC:+-DCMAKE_CUDA_COMPILER="$NVCC"}
cmake --build out
cp out/user .
if [ -n "${NVCC:-}" ]; then cp out/user_cuda .; fi
