#!/bin/sh
# quiet.sh LOG COMMAND...: runs a compiler of GPU code. What ptxas says of each kernel (registers, spills) goes to LOG alone.
log=$1
shift
"$@" 2>"$log"
code=$?
grep -v -e '^ptxas info' -e 'bytes stack frame' -e '^$' "$log" >&2
exit $code
