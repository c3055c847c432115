#!/usr/bin/env bash
# sessions: what a million stored sessions cost an idle daemon, and a turn.
#
#   bench/sessions.sh [SESSIONS]       about a minute
#
# The same daemon is started on an empty folder and on one that holds that many sessions of one
# turn each: how long until it serves, what it holds when idle, and how many turns a second
# pass then. Server on core 0, driver on core 1.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

SESSIONS=${1:-1000000}
compile_driver
bench/script.sh >"$DATA/script.yaml"
scripts/build "$BUILD" "weir bench_store_bench" >/dev/null

measure() { # name, folder
    local ports=$DATA/ports.json began now
    rm -f "$ports"
    began=$(date +%s%N)
    serve_weir "$ports" "$2" --script "$DATA/script.yaml" --grpc 127.0.0.1:0 --http 127.0.0.1:0
    until [ -s "$ports" ]; do sleep 0.002; done
    now=$(date +%s%N)
    sleep 5
    printf '%-22s serves after %5d ms, idle %6d KiB' "$1" $(((now - began) / 1000000)) \
        "$(awk '/^Rss:/ {sum += $2} END {print sum}' "/proc/$PID/smaps")"
    taskset -c 1 "$OUT/driver" turns --limit 120 --port "$(port_in "$ports" grpc)" \
        --pid "$PID" --key "$KEY" --connections 8 --streams 32 --seconds 3 |
        sed -n 's/.*"turns_per_second": *\([0-9.]*\).*/, \1 turns\/s/p'
    stop
}

echo "sessions: filling $SESSIONS" >&2
"$BUILD/bench/store_bench" "$DATA" $((SESSIONS / 100000 + 2)) 2 "$SESSIONS" >"$DATA/filled"
for round in 1 2 3; do
    measure "empty" "$DATA/empty$round"
    measure "$SESSIONS sessions" "$DATA/2"
done
