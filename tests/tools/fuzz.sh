#!/bin/sh
# Compile one libFuzzer file and run it, beginning with its corpus: fuzz.sh FILE COMPILER SECONDS FLAGS...
# A compiler without libFuzzer (g++) runs the corpus alone. Nothing that a reader is given justifies an allocation above 256 MB.
set -e
file=$1 compiler=$2 seconds=$3
shift 3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
seeds=$(cd "$(dirname "$file")" && pwd)/corpus/$(basename "$file" .cpp)
case $compiler in
*clang*) kind=-fsanitize=fuzzer,address,undefined ;;
*) kind='-DWEFT_REPLAY -fsanitize=address,undefined' ;;
esac
case "$*" in *WEFT_TOKENIZER*) libraries='-lpcre2-8 -lutf8proc' ;; *) libraries= ;; esac
tests="\"$(cd "$(dirname "$file")/.." && pwd)\""
"$compiler" -std=c++20 -O1 -g $kind -fno-sanitize-recover=all "-DWEFT_TESTS=$tests" "$@" "$file" -o "$place/fuzz" -lfmt $libraries
mkdir "$place/corpus" "$place/none"
test -d "$seeds" || seeds=$place/none
cd "$place"
case $compiler in
*clang*) ./fuzz -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb=256 -timeout=10 -print_final_stats=1 corpus "$seeds" ;;
*) find "$seeds" -type f -exec ./fuzz {} + ;;
esac
