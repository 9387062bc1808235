# weft is installed under a prefix that CMake is told.
set -e
cmake -S "$here/cmake_installed" -B out -DCMAKE_PREFIX_PATH="$1" -DCUDA="$([ -n "${NVCC:-}" ] && echo ON || echo OFF)" ${NVCC:+-DCMAKE_CUDA_COMPILER="$NVCC"}
cmake --build out
cp out/user .
if [ -n "${NVCC:-}" ]; then cp out/user_cuda .; fi
