#!/usr/bin/env bash
# file_race: file tools against links swapped in while they look (row X6).
#
#   test/proof/file_race.sh [TRIES]        100,000 without a number
#
# A thread exchanges a folder with a link that leads out of the root, as fast as it can, while
# another reads and writes below that name. Nothing outside may be read or written.
set -euo pipefail

BUILD=${BUILD:-build}
export WEIR_RACE_TRIES=${1:-100000}
"$BUILD/test/tool/root_test"
