#!/bin/sh
# From nothing to a trained model: installs what is missing from Debian's packages, builds everything into build/ and runs GRPO on
# arithmetic (examples/arithmetic.yaml) into runs/quickstart. Arguments go to build/examples/grpo: seed=2, --steps 10.
set -eu
cd "$(dirname "$0")/.."
. tests/tools/setup.sh
packages
build build
exec build/examples/grpo --config examples/arithmetic.yaml --out runs/quickstart "$@"
