#!/usr/bin/env bash
# powercuts: the store on a disk that loses its power, many times (row R-1).
#
#   test/proof/powercuts.sh [CUTS [SEED]]        2,000 without a number
#
# Each cut keeps an arbitrary part of what was not synced; all that was acknowledged must be
# found. A third as many follow without syncs in each commit, which must lose something: else
# the disk of this test would prove nothing.
set -euo pipefail

BUILD=${BUILD:-build}
export WEIR_CUTS=${1:-2000} WEIR_SEED=${2:-$RANDOM}
echo "powercuts: $WEIR_CUTS cuts, seed $WEIR_SEED"
"$BUILD/test/store/powercut_test"
