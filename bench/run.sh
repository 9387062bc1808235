#!/bin/sh
# Runs every microbenchmark and writes a dated table, with the command, the machine and the counting rule of each: runs/bench-WHAT-DATE.md.
#   sh bench/run.sh [cpu|gpu]      gpu: bench/cuda_*.cu, built by nvcc, and whole steps; needs a GPU
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-cpu}
case $what in cpu | gpu) ;; *) echo "bench/run.sh: unknown argument '$what': cpu or gpu" >&2; exit 2 ;; esac
. tests/tools/setup.sh
packages || exit 1
mkdir -p runs
table=runs/bench-$what-$(date -u +%Y%m%d-%H%M%S).md
failed=0

# measure NAME RULE COMMAND...: a section of the table
measure() {
  name=$1 rule=$2
  shift 2
  {
    printf '\n## %s\n\nCommand: `%s`. Counting: %s. Load before: %s.\n\n```\n' "$name" "$*" "$rule" "$(cut -d' ' -f1 /proc/loadavg)"
  } >>"$table"
  if "$@" >>"$table" 2>&1; then echo "$name: done"; else echo "$name: FAILED (in $table)"; failed=1; fi
  echo '```' >>"$table"
}

{
  printf '# Measured on %s (%s)\n\n' "$(date -u +%Y-%m-%d)" "$what"
  printf 'weft %s, commit %s, %s.\n' "$(sed -n 's/^#define WEFT_VERSION "\(.*\)"$/\1/p' include/weft/version.hpp)" \
    "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$(${CXX:-g++} --version | head -n 1)"
  printf 'Machine: %s, %s processors.\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
} >"$table"

if [ "$what" = cpu ]; then
  build build || exit 1
  measure kernels 'operations of the plain formula, best time of each; beside OpenBLAS in the same run where it is there' build/bench/kernels
  measure step 'training 6 x weights x tokens, generation 2 x weights x tokens, as shares of sgemm in the same run' build/bench/step --rounds 1
  measure tokenizer 'bytes of text a second, wall clock, best of several' build/bench/tokenizer tests/data/tokenizers/pairs examples/arithmetic/train.jsonl
  measure dataset 'rows and bytes a second, wall clock' build/bench/dataset examples/arithmetic/model examples/arithmetic/train.jsonl
  measure comm 'the slowest rank, wall clock, best of many; bytes of the whole array' build/bench/comm
  measure compile 'user time of the compiler, best of several, and multiples of a fixed file in the same run' build/bench/compile
else
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [ -x "$nvcc" ] || { echo 'bench/run.sh: gpu needs nvcc of the CUDA toolkit' >&2; exit 1; }
  if command -v nvidia-smi >/dev/null; then printf 'GPU: %s\n' "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)" >>"$table"
  else echo 'bench/run.sh: gpu needs a GPU; nvidia-smi is not there' >&2; exit 1; fi
  for source in bench/cuda_*.cu; do
    program=build/bench/$(basename "$source" .cu)
    mkdir -p build/bench
    "$nvcc" -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr --extended-lambda -diag-suppress 2189 -Iinclude \
      -o "$program" "$source" -lcublasLt -lcuda || { echo "$source: does not build"; failed=1; continue; }
    measure "$(basename "$program")" 'as the program says beside each line' "$program"
  done
  build build || exit 1
  for recipe in grpo ppo; do
    measure "step, $recipe" 'generated, read by the critic and by the actor: bench/gpu/step.cpp' build/bench/step --shape qwen3-0.6b --recipe $recipe
  done
fi
echo "$table"
exit $failed
