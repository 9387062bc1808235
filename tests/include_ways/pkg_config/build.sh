# weft is installed: its weft.pc says the rest. It lies in share/pkgconfig of the prefix.
set -e
export PKG_CONFIG_PATH="$1/share/pkgconfig"
pkg-config --exists 'weft >= 0.1' || exit 1
# shellcheck disable=SC2046  # words on purpose
${CXX:-g++} -std=c++20 $(pkg-config --cflags weft) "$user"/main.cpp "$user"/other.cpp -o user $(pkg-config --libs weft)
if [ -n "${NVCC:-}" ]; then
  "$NVCC" -std=c++20 -arch=sm_90a --expt-relaxed-constexpr -I"$(pkg-config --variable=includedir weft)" "$user/user.cu" -o user_cuda -lcublasLt
fi
