#!/bin/sh
# Builds everything and runs every test; the last line is `N passed, N failed`.
#   sh tests/run.sh         the tests of every change
#   sh tests/run.sh slow    also: long properties, sanitizers, fuzzers, every mistake with nvcc, headers with clang
#   sh tests/run.sh gpu     also: the tests that need a GPU
set -u
cd "$(dirname "$0")/.." || exit 1
mode=${1:-}
case $mode in '' | slow | gpu) ;; *) echo "tests/run.sh: unknown argument '$mode': slow, gpu or nothing" >&2; exit 2 ;; esac

. tests/tools/setup.sh
packages || exit 1
build build || { echo '0 passed, 1 failed'; exit 1; }

logs=
# run FOLDER NAME ARGUMENTS...: a meson test run; its record is kept for the count
run() {
  folder=$1 record=$1/meson-logs/$2.json
  shift 2
  rm -f "$folder/meson-logs/testlog.json" "$record"
  meson test -C "$folder" --no-rebuild --print-errorlogs --quiet "$@"
  mv "$folder/meson-logs/testlog.json" "$record" 2>/dev/null
  logs="$logs $record"
}

run build fast --no-suite slow --no-suite gpu
if [ "$mode" = gpu ]; then run build gpu --suite gpu; fi
if [ "$mode" = slow ]; then
  run build slow --suite slow
  export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
  for folder in build-asan build-tsan; do
    sanitizer=thread
    [ $folder = build-tsan ] || sanitizer=address,undefined
    if build $folder -Ddebug=true -Doptimization=1 -Db_sanitize=$sanitizer -Db_lundef=false
    then run $folder fast --suite unit
    else logs="$logs $folder/failed-to-build"
    fi
  done
fi
python3 tests/tools/count.py $logs
