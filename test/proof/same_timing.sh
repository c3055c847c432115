#!/usr/bin/env bash
# same_timing: does comparing a secret take a time that tells something? Needs a quiet machine;
# three tries, since one interrupt too many is not a leak but a leak shows every time.
set -euo pipefail

BUILD=${BUILD:-build}
mkdir -p "$BUILD/proof"
"${CC:-cc}" -std=c17 -D_GNU_SOURCE -O2 -Isrc -o "$BUILD/proof/same_timing" \
    test/proof/same_timing.c src/base/{same,mem,clock}.c -lm
for _ in 1 2 3; do
    "$BUILD/proof/same_timing" && exit 0
done
exit 1
