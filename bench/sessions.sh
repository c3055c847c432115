#!/usr/bin/env bash
# sessions: what a million stored sessions cost an idle daemon, and a turn.
#
#   bench/sessions.sh [SESSIONS]       about a minute; wants the driver of `bench/run.sh --short`
#
# The same daemon is started on an empty folder and on one that holds that many sessions of one
# turn each: how long until it serves, what it holds when idle, and how many turns a second
# pass then. Server on core 0, driver on core 1.
set -euo pipefail
cd "$(dirname "$0")/.."

SESSIONS=${1:-1000000}
BUILD=${BUILD:-build} OUT=${BUILD:-build}/bench KEY=bench-key
PID= ROOM=$(mktemp -d "${BENCH_DATA:-$OUT}/sessions-XXXXXX")

stop() {
    [ -z "$PID" ] || { kill -TERM "$PID" 2>/dev/null && wait "$PID" 2>/dev/null; } || true
    PID=
}
trap 'stop; rm -rf "$ROOM"' EXIT

[ -x "$OUT/driver" ] || { echo "sessions: run bench/run.sh --short first" >&2; exit 1; }
scripts/build "$BUILD" "weir bench_store_bench" >/dev/null

measure() { # name, folder
    local ports=$ROOM/ports.json began now
    rm -f "$ports"
    began=$(date +%s%N)
    CRAWBL_MCP_SIGNING_KEY=$KEY taskset -c 0 "$BUILD/weir" serve -c bench/weir.yaml \
        --script "$OUT/script.yaml" --threads 1 --data "$2" --grpc 127.0.0.1:0 \
        --http 127.0.0.1:0 --ports-file "$ports" 2>"$ROOM/log" &
    PID=$!
    until [ -s "$ports" ]; do sleep 0.002; done
    now=$(date +%s%N)
    sleep 5
    printf '%-22s serves after %5d ms, idle %6d KiB' "$1" $(((now - began) / 1000000)) \
        "$(awk '/^Rss:/ {sum += $2} END {print sum}' "/proc/$PID/smaps")"
    taskset -c 1 "$OUT/driver" turns --limit 120 --port "$(sed -n 's/.*"grpc": *\([0-9]*\).*/\1/p' "$ports")" \
        --pid "$PID" --key "$KEY" --connections 8 --streams 32 --seconds 3 |
        sed -n 's/.*"turns_per_second": *\([0-9.]*\).*/, \1 turns\/s/p'
    stop
}

echo "sessions: filling $SESSIONS" >&2
"$BUILD/bench/store_bench" "$ROOM" $((SESSIONS / 100000 + 2)) 2 "$SESSIONS" >"$ROOM/filled"
for round in 1 2 3; do
    measure "empty" "$ROOM/empty$round"
    measure "$SESSIONS sessions" "$ROOM/2"
done
