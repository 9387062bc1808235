# The headers on the include path, fmt and threads linked. Products must not be fused with sums, or log-probs differ in their last bits.
set -e
weft=$1
${CXX:-g++} -std=c++20 -ffp-contract=off -I"$weft/include" "$user"/main.cpp "$user"/other.cpp -o user -lfmt -pthread
if [ -n "${NVCC:-}" ]; then "$NVCC" -std=c++20 -arch=sm_90a --expt-relaxed-constexpr -I"$weft/include" "$user/user.cu" -o user_cuda -lcublasLt; fi
