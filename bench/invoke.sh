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

BUILD=${BUILD:-build}
OUT=$BUILD/bench
WEIR=${BENCH_WEIR:-$BUILD/weir}
ROUNDS=${BENCH_RUNS:-5}
SECONDS_EACH=${BENCH_SECONDS:-3}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1; fi
mkdir -p "$OUT"
DATA=$(mktemp -d "${BENCH_DATA:-/var/tmp}/invoke-XXXXXX")
PID=

stop() {
    [ -z "$PID" ] || { kill -TERM "$PID" 2>/dev/null && wait "$PID" 2>/dev/null; } || true
    PID=
}
trap 'stop; rm -rf "$DATA"' EXIT

command -v wrk >/dev/null || { echo "invoke: wrk is missing: scripts/setup bench" >&2; exit 1; }
(cd bench/peers/go_sqlite && go build -mod=readonly -tags libsqlite3 -o "$OLDPWD/$OUT/go_sqlite" .)
cat >"$DATA/script.yaml" <<'END'
script: 1
model: script
agents:
  - slug: manager
scenes:
  - replies:
      - - text: ok
          pace: {every: 0, chunk: 64}
END

start() { # server
    local room=$DATA/$1.$2
    mkdir -p "$room"
    case $1 in
    go) GOMAXPROCS=1 taskset -c 0 "$OUT/go_sqlite" 127.0.0.1:18099 "$room/go.db" & PID=$! PORT=18099 ;;
    weir)
        taskset -c 0 "$WEIR" serve -c bench/weir.yaml --script "$DATA/script.yaml" --threads 1 \
            --data "$room" --http 127.0.0.1:0 --grpc 127.0.0.1:0 --nimi-grpc off \
            --nimi-http off --ports-file "$room/ports.json" 2>"$OUT/weir.log" &
        PID=$!
        for _ in $(seq 100); do [ -s "$room/ports.json" ] && break; sleep 0.05; done
        PORT=$(sed -n 's/.*"http": *\([0-9]*\).*/\1/p' "$room/ports.json")
        ;;
    esac
    for _ in $(seq 100); do
        curl -s -o /dev/null -d '{"input":"hello","session_id":"first"}' \
            -H 'content-type: application/json' "http://127.0.0.1:$PORT/invoke" && return
        sleep 0.05
    done
}

ticks() { awk '{print $14 + $15}' "/proc/$PID/stat"; }

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
