#!/usr/bin/env bash
# calls: short calls, one answer each, through weir and through Go's own servers.
#
#   bench/calls.sh               about three minutes
#   bench/calls.sh --short       some seconds: whether everything still runs
#
# gRPC health checks and GET /health, which nobody stores; POST /invoke, which weir commits to disk
# before it answers and Go only parses. h2load and wrk on core 1 ask, the server is on core 0.
# A call that is not answered with 200 fails the run. docs/performance.md explains the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

ROUNDS=${BENCH_RUNS:-3}
SECONDS_EACH=${BENCH_SECONDS:-3}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1; fi
SERVERS=${BENCH_CALLS:-"go weir"}
WARM_SECONDS=1
RESULTS=$OUT/calls.jsonl
PORTS=$DATA/ports.json
: >"$RESULTS"

start() { # server, http|grpc
    rm -rf "$PORTS" "$DATA/store"
    case $1-$2 in
    go-http) GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go" http "$PORTS" & PID=$! ;;
    go-grpc) GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go" converse "$PORTS" & PID=$! ;;
    weir-*) serve_weir "$PORTS" "$DATA/store" --script "$DATA/script.yaml" --http 127.0.0.1:0 --grpc 127.0.0.1:0 ;;
    esac
    PORT=$(port_in "$PORTS" "$2")
}

# The tool's own words about calls a second and about calls that failed.
h2load_says() { # arguments...
    taskset -c 1 h2load -D "$SECONDS_EACH" --warm-up-time "$WARM_SECONDS" "$@" 2>&1 |
        awk '/^finished in/ {rate = $4} /^requests:/ {failed = $10 + $12 + $14}
             /^status codes:/ {gsub(",", ""); bad = $5 + $7 + $9}
             END {print rate + 0, failed + bad + 0}'
}

wrk_says() {
    taskset -c 1 wrk -t1 -c64 -d "${SECONDS_EACH}s" "$@" 2>&1 |
        awk '/^Requests\/sec/ {rate = $2} /Non-2xx|Socket errors/ {bad = 1} END {print rate + 0, bad + 0}'
}

cat_check() { printf '\0\0\0\0\0'; } # a gRPC message of no bytes: how is the whole server?

measure() { # server, round, name, tool, arguments...
    local server=$1 round=$2 name=$3 before after rate failed seconds tool=$4
    shift 4
    seconds=$SECONDS_EACH
    [ "$tool" = wrk ] || seconds=$((SECONDS_EACH + WARM_SECONDS)) # whose CPU counts too
    before=$(ticks)
    read -r rate failed < <("${tool}_says" "$@")
    after=$(ticks)
    awk -v server="$server" -v round="$round" -v name="$name" -v rate="$rate" -v failed="$failed" \
        -v busy="$((after - before))" -v seconds="$seconds" 'BEGIN {
            if (failed > 0 || rate == 0)
                printf "{\"server\": \"%s\", \"round\": %d, \"call\": \"%s\", \"failed\": %d}\n", server, round, name, failed
            else
                printf "{\"server\": \"%s\", \"round\": %d, \"call\": \"%s\", \"rate\": %.0f, \"core\": %.2f}\n",
                    server, round, name, rate, busy / 100 / seconds
        }' >>"$RESULTS"
}

measure_grpc() { # server, round
    start "$1" grpc
    local url=http://127.0.0.1:$PORT/grpc.health.v1.Health/Check
    local grpc=(-d "$OUT/check" -H 'content-type: application/grpc' -H 'te: trailers')
    measure "$1" "$2" "gRPC Check, 64 connections" h2load -c 64 -m 1 "${grpc[@]}" "$url"
    measure "$1" "$2" "gRPC Check, 10 x 100" h2load -c 10 -m 100 "${grpc[@]}" "$url"
    stop
}

measure_http() { # server, round
    start "$1" http
    measure "$1" "$2" "GET /health, HTTP/2, 10 x 100" h2load -c 10 -m 100 "http://127.0.0.1:$PORT/health"
    measure "$1" "$2" "GET /health, HTTP/1.1, 64" wrk "http://127.0.0.1:$PORT/health"
    measure "$1" "$2" "POST /invoke, 64" wrk -s bench/invoke.lua "http://127.0.0.1:$PORT/invoke"
    stop
}

need h2load wrk
bench/peers/go/build.sh "$OUT" >"$OUT/go.build.log" 2>&1 ||
    { say "Go is left out: $(tail -n 1 "$OUT/go.build.log")"; SERVERS=${SERVERS/go/}; }
cat_check >"$OUT/check"
instant_script >"$DATA/script.yaml"
for round in $(seq "$ROUNDS"); do
    for server in $SERVERS; do
        say "round $round of $ROUNDS: short calls, $server"
        measure_grpc "$server" "$round"
        measure_http "$server" "$round"
    done
done
python3 bench/calls_table.py "$RESULTS" | tee "$OUT/calls.md"
! grep -q '"failed"' "$RESULTS"
