#!/bin/sh
# Builds tests/cuda/*.cu with nvcc and runs them; the last line is `N passed, N failed`.
#   sh tests/cuda/run.sh [--prebuilt DIR] [NAME...]    names of files without .cu; DIR holds programs built elsewhere
#   NVCC, ARCH (default: -gencode=arch=compute_90a,code=sm_90a) and FLAGS may be set
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=
if [ "${1:-}" = --prebuilt ]; then folder=$2; shift 2; fi
names=${*:-$(cd tests/cuda && ls ./*.cu | sed 's|^\./||; s/\.cu$//')}
if [ -z "$folder" ]; then
  folder=build/tests-cuda
  mkdir -p $folder
  for name in $names; do
    (
      host=$(ls "tests/cuda/$name.cpp" 2>/dev/null) # what g++ must compile
      ${NVCC:-nvcc} -std=c++20 -O2 ${ARCH:--gencode=arch=compute_90a,code=sm_90a} --expt-relaxed-constexpr --extended-lambda \
        -diag-suppress 2189 ${FLAGS:-} -Iinclude -o "$folder/$name" "tests/cuda/$name.cu" $host -lcublasLt -lcuda >"$folder/$name.log" 2>&1 ||
        rm -f "$folder/$name"
    ) &
  done
  wait
fi
passed=0 failed=0
for name in $names; do
  program=$folder/$name
  if [ ! -x "$program" ]; then
    echo "$name: did not build"
    cat "$program.log" 2>/dev/null
    failed=$((failed + 1))
    continue
  fi
  echo "== $name"
  "$program" >"/tmp/weft-$name.log" 2>&1
  code=$?
  cat "/tmp/weft-$name.log"
  last=$(tail -n 1 "/tmp/weft-$name.log")
  p=$(echo "$last" | sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p')
  f=$(echo "$last" | sed -n 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p')
  if [ -z "$p" ]; then f=1; echo "$name: ended with code $code"; fi
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
