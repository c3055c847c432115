#!/usr/bin/env bash
# store_instructions: what one durable turn costs the store's thread, in instructions (callgrind).
#
#   bench/store_instructions.sh [IN_FLIGHT [FUNCTIONS]]       256 or 64; 30 functions
#
# Noise of the machine does not touch the figure: store_bench writes 2,000 turns and 6,000 turns,
# and the difference divided by 4,000 is a turn. A turn is 66 events as a reply in 64 pieces leaves
# them (9 KB); the second line is a short turn of 300 bytes, as an /invoke leaves it.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=${BUILD:-build}
IN_FLIGHT=${1:-256}
FUNCTIONS=${2:-30}
FEW=2000 MANY=6000
ROOM=$(mktemp -d /var/tmp/store_instructions.XXXXXX)
trap 'rm -rf "$ROOM"' EXIT

case $IN_FLIGHT in
64) STREAMED=13 SHORT=1 ;;
256) STREAMED=14 SHORT=15 ;;
*) echo "store_instructions: 64 or 256 in flight" >&2; exit 2 ;;
esac
scripts/build "$BUILD" bench_store_bench >/dev/null

# The instructions of each function of the threads that are not the first one: the loop is the
# first, the store's thread and the one that folds the log are the others.
count() { # workload, writes
    local out=$ROOM/$1.$2
    mkdir -p "$out"
    valgrind --tool=callgrind --separate-threads=yes --fair-sched=yes \
        --callgrind-out-file="$out/cg" "$BUILD/bench/store_bench" "$out/data" 0 "$1" 256 "$2" \
        >"$out/log" 2>&1
    for file in "$out"/cg-*; do
        case $file in *-01) continue ;; esac
        callgrind_annotate --auto=no --tree=none --threshold=100 "$file" 2>/dev/null
    done | sed -n 's/^ *\([0-9,]\+\) ([ 0-9.]*%) *\(.*\)$/\1 \2/p' | tr -d , |
        awk '$2 !~ /^(PROGRAM|events)/ { sub(/ \[.*/, ""); n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n }
             END { for (name in sum) print sum[name] "\t" name }' >"$out/functions"
}

for row in "$STREAMED 66 events" "$SHORT short"; do
    number=${row%% *}
    count "$number" $FEW
    count "$number" $MANY
    awk -F'\t' -v turns=$((MANY - FEW)) 'NR == FNR { few[$2] = $1; next }
        { each = ($1 - few[$2]) / turns; all += each; printf "%.0f\t%s\n", each, $2 > "/dev/stderr" }
        END { printf "%.0f\n", all }' "$ROOM/$number.$FEW/functions" \
        "$ROOM/$number.$MANY/functions" 2>"$ROOM/each" >"$ROOM/all"
    echo "a turn (${row#* }), $IN_FLIGHT at once: $(cat "$ROOM/all") instructions in the store"
    sort -rn "$ROOM/each" | head -"$FUNCTIONS" | sed 's/^/    /'
done
