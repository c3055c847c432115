#!/usr/bin/env bash
# invoke: a short durable turn, POST /invoke, through weir and through a Go handler that commits one
# row to SQLite a request (bench/peers/go_sqlite; requests that wait share a commit there, too).
#
#   bench/invoke.sh              half a minute
#   bench/invoke.sh --short      some seconds: whether everything still runs
#
# Both sync each commit, on one disk. wrk on core 1 asks with 64 connections, the server is on core
# 0. Ratios of one run are comparable, figures of two runs are not.
set -euo pipefail
cd "$(dirname "$0")/.."

BENCH_DATA=${BENCH_DATA:-/var/tmp}
. bench/lib.sh

ROUNDS=${BENCH_RUNS:-5}
SECONDS_EACH=${BENCH_SECONDS:-3}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1; fi

need wrk
SERVERS="go weir"
binary=$(realpath "$OUT")/go_sqlite
if ! (cd bench/peers/go_sqlite && go build -mod=readonly -tags libsqlite3 -o "$binary" .) >"$OUT/go_sqlite.build.log" 2>&1; then
    say "Go is left out: $(tail -n 1 "$OUT/go_sqlite.build.log")"
    SERVERS=weir
fi
instant_script >"$DATA/script.yaml"

start() { # server, round
    local room=$DATA/$1.$2
    mkdir -p "$room"
    case $1 in
    go) GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go_sqlite" "$room/ports.json" "$room/go.db" & PID=$! ;;
    weir) serve_weir "$room/ports.json" "$room" --script "$DATA/script.yaml" --http 127.0.0.1:0 --grpc 127.0.0.1:0 ;;
    esac
    PORT=$(port_in "$room/ports.json" http)
    curl -s -o /dev/null -d '{"input":"hello","session_id":"first"}' \
        -H 'content-type: application/json' "http://127.0.0.1:$PORT/invoke"
}

bad=0
for round in $(seq "$ROUNDS"); do
    for server in $SERVERS; do
        say "round $round of $ROUNDS: a short durable turn, $server"
        start "$server" "$round"
        before=$(ticks)
        taskset -c 1 wrk -t1 -c64 -d "${SECONDS_EACH}s" -s bench/invoke.lua \
            "http://127.0.0.1:$PORT/invoke" >"$DATA/wrk" 2>&1
        if grep -E 'Non-2xx|Socket errors' "$DATA/wrk"; then
            say "$server, round $round: a call failed, so it has no figure"
            bad=1
        else
            awk -v server="$server" -v ticks=$(($(ticks) - before)) '/requests in/ {count = $1}
                /^Requests\/sec/ {rate = $2}
                END {printf "%s {\"rate\": %.0f, \"cpu\": %.1f}\n", server, rate, ticks * 10000 / count}' \
                "$DATA/wrk" >>"$DATA/rows"
        fi
        stop
    done
done
python3 bench/json_table.py "$DATA/rows" "POST /invoke, durable, 64 connections" \
    "rate=calls a second" "cpu=CPU a call, us"
exit $bad
