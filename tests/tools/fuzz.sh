#!/bin/sh
# Compile one libFuzzer file and run it: fuzz.sh FILE COMPILER SECONDS FLAGS...
set -e
file=$1 compiler=$2 seconds=$3
shift 3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$compiler" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all "$@" "$file" -o "$place/fuzz" -lfmt
mkdir "$place/corpus"
cd "$place"
./fuzz -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 corpus
