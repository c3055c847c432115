#!/usr/bin/env bash
# late: many readers who come late to one finished run of 10,000 events, all at once.
#
#   bench/late.sh [READERS...]       default 1 100 1000; half a minute
#
# How long until all have everything, how long the slowest waits for its first byte, what GET
# /health takes beside them, and what the server holds before, at its most and 5 s after.
# Server on core 0, readers on core 1. docs/performance.md explains the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=${BUILD:-build}
OUT=$BUILD/bench
WEIR=${BENCH_WEIR:-$BUILD/weir}
COUNTS=("${@:-1 100 1000}")
mkdir -p "$OUT"
ROOM=$(mktemp -d "${BENCH_DATA:-$OUT}/late-XXXXXX")
PID=

stop() {
    [ -z "$PID" ] || { kill -TERM "$PID" 2>/dev/null && wait "$PID" 2>/dev/null; } || true
    rm -rf "$ROOM"
}
trap stop EXIT

script() { # 10,000 chunks
    printf 'script: 1\nmodel: script\nagents:\n  - slug: manager\nscenes:\n  - replies:\n      -\n        - text: "'
    awk 'BEGIN {for (n = 0; n < 10000; n++) printf "%08u the water goes on over the weir, to the mill, to sea and up.", n}'
    printf '"\n          pace: {every: 1ms, chunk: 64}\n'
}

pss_kib() { awk '/^Pss:/ {print $2}' "/proc/$PID/smaps_rollup"; }

ask() { curl -s --max-time 60 "$@"; }

${CC:-gcc} -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra bench/late_readers.c -o "$OUT/late_readers"
script >"$ROOM/script.yaml"
printf 'log: {level: warning}\nlimits: {connections: 3000}\n' >"$ROOM/weir.yaml"
taskset -c 0 "$WEIR" serve -c "$ROOM/weir.yaml" --script "$ROOM/script.yaml" --threads 1 \
    --data "$ROOM/store" --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
    --ports-file "$ROOM/ports.json" 2>"$ROOM/log" &
PID=$!
for _ in $(seq 100); do
    [ -s "$ROOM/ports.json" ] && break
    sleep 0.05
done
PORT=$(sed -n 's/.*"http": *\([0-9]*\).*/\1/p' "$ROOM/ports.json")
ask -o "$ROOM/answer" -H 'content-type: application/json' -d '{"input":"hello","session_id":"late"}' \
    "http://127.0.0.1:$PORT/invoke"
RUN=$(ask "http://127.0.0.1:$PORT/weir/v1/runs?session_id=late" | grep -o '"id": *"[0-9]*"' | head -n 1 | tr -dc 0-9)
sleep 4
for count in ${COUNTS[*]}; do
    before=$(pss_kib)
    (while kill -0 "$PID" 2>/dev/null; do pss_kib; sleep 0.05; done) >"$ROOM/pss" 2>/dev/null &
    watch=$!
    taskset -c 1 "$OUT/late_readers" "$PORT" "$RUN" "$count"
    kill "$watch" 2>/dev/null || true
    sleep 5
    printf '  PSS KiB: %d before, at most %d, %d 5 s after\n' "$before" "$(sort -n "$ROOM/pss" | tail -n 1)" "$(pss_kib)"
done
