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
(cd bench/peers/go_sqlite && go build -mod=readonly -tags libsqlite3 -o "$OLDPWD/$OUT/go_sqlite" .)
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

printf '%-6s %9s %12s %9s\n' server calls/s 'CPU us/call' failed
for round in $(seq "$ROUNDS"); do
    for server in go weir; do
        start $server "$round"
        before=$(ticks)
        taskset -c 1 wrk -t1 -c64 -d "${SECONDS_EACH}s" -s bench/invoke.lua \
            "http://127.0.0.1:$PORT/invoke" >"$DATA/wrk" 2>&1
        awk -v server=$server -v ticks=$(($(ticks) - before)) '/requests in/ {count = $1}
            /^Requests\/sec/ {rate = $2} /Non-2xx|Socket errors/ {failed = $0}
            END {printf "%-6s %9.0f %12.1f %9s\n", server, rate, ticks * 10000 / count, failed ? failed : 0}' "$DATA/wrk" |
            tee -a "$DATA/rows"
        stop
    done
done
for server in go weir; do
    grep "^$server" "$DATA/rows" | sort -nk2 | awk '{rate[NR] = $2; n = NR}
        END {print "median of calls/s, '$server': " rate[int((n + 1) / 2)]}'
    grep "^$server" "$DATA/rows" | sort -nk3 | awk '{cpu[NR] = $3; n = NR}
        END {print "median of CPU us a call, '$server': " cpu[int((n + 1) / 2)]}'
done
