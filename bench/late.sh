#!/usr/bin/env bash
# late: many readers who come late to one finished run of 10,000 events, all at once.
#
#   bench/late.sh [READERS...]       default 1 100 1000; half a minute
#   bench/late.sh --short            10: whether it still runs
#
# How long until all have everything, how long the slowest waits for its first byte, what GET
# /health takes beside them, and what the server holds before, at its most and 5 s after.
# Server on core 0, readers on core 1, where a process of its own asks /health ahead of them.
# docs/performance.md explains the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

COUNTS=("${@:-1 100 1000}")
[ "${1:-}" != --short ] || COUNTS=(10)

script() { # 10,000 chunks
    printf 'script: 1\nmodel: script\nagents:\n  - slug: manager\nscenes:\n  - replies:\n      -\n        - text: "'
    awk 'BEGIN {for (n = 0; n < 10000; n++) printf "%08u the water goes on over the weir, to the mill, to sea and up.", n}'
    printf '"\n          pace: {every: 1ms, chunk: 64}\n'
}

pss_kib() { awk '/^Pss:/ {print $2}' "/proc/$PID/smaps_rollup"; }

ask() { curl -s --max-time 60 "$@"; }

compile_c late_readers bench/late_readers.c
script >"$DATA/script.yaml"
printf 'log: {level: warning}\nlimits: {connections: 3000}\n' >"$DATA/weir.yaml"
"${RUNNER[@]}" "$WEIR" serve -c "$DATA/weir.yaml" --script "$DATA/script.yaml" --threads 1 \
    --data "$DATA/store" --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
    --ports-file "$DATA/ports.json" 2>"$DATA/log" &
PID=$!
PORT=$(port_in "$DATA/ports.json" http)
ask -o "$DATA/answer" -H 'content-type: application/json' -d '{"input":"hello","session_id":"late"}' \
    "http://127.0.0.1:$PORT/invoke"
RUN=$(ask "http://127.0.0.1:$PORT/weir/v1/runs?session_id=late" | grep -o '"id": *"[0-9]*"' | head -n 1 | tr -dc 0-9)
sleep 4
for count in ${COUNTS[*]}; do
    before=$(pss_kib)
    (while kill -0 "$PID" 2>/dev/null; do pss_kib; sleep 0.05; done) >"$DATA/pss" 2>/dev/null &
    watch=$!
    said=$(taskset -c 1 "$OUT/late_readers" "$PORT" "$RUN" "$count")
    kill "$watch" 2>/dev/null || true
    sleep 5
    printf '%s_readers {"before": %d, "most": %d, "after": %d, %s\n' "$count" "$before" \
        "$(sort -n "$DATA/pss" | tail -n 1)" "$(pss_kib)" "${said#\{}" >>"$DATA/rows"
done
python3 bench/json_table.py "$DATA/rows" "10,000 events each" "seconds=until all have everything, s" \
    "first_byte_ms=slowest first byte, ms" "mb_s=MB a second of all" "health_p99_ms=GET /health p99, ms" \
    "health_worst_ms=its worst, ms" "before=PSS before, KiB" "most=PSS at its most, KiB" "after=PSS 5 s after, KiB"
