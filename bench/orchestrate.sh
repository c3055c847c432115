#!/usr/bin/env bash
# orchestrate: turns a second through weir orchestrate and a runtime, each message and each turn
# committed to PostgreSQL before it is answered.
#
#   bench/orchestrate.sh              half a minute
#   bench/orchestrate.sh --short      some seconds: whether it still runs
#
# `fake` has no runtime: it is the orchestrator and PostgreSQL alone. `weir` asks a weir serve over
# gRPC, which commits the turn to its own SQLite. A turn is a short answer with one usage event. wrk on
# core 1 asks with CLIENTS connections, each conversation in a workspace of its own; the orchestrator
# and the runtime are on core 0, PostgreSQL (a private one, which syncs each commit) where it likes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${WEIR_TEST_POSTGRES:-}" ]; then exec python3 test/e2e/postgres.py bench/orchestrate.sh "$@"; fi

BENCH_DATA=${BENCH_DATA:-/var/tmp}
. bench/lib.sh

ROUNDS=${BENCH_RUNS:-3} SECONDS_EACH=${BENCH_SECONDS:-5} CLIENTS=${BENCH_CLIENTS:-64}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1 CLIENTS=8; fi

need wrk
instant_script >"$DATA/script.yaml"
export WEIR_ORCHESTRATOR_DATABASE=$WEIR_TEST_POSTGRES WEIR_ORCHESTRATOR_KEY=$KEY
"$WEIR" orchestrate --migrate >/dev/null

RUNTIME=
stop_all() {
    stop
    stop_pid "$RUNTIME"
    RUNTIME=
}
trap 'stop_all; finish' EXIT

start() { # fake | weir
    local driver=(--driver fake)
    if [ "$1" = weir ]; then
        serve_weir "$DATA/runtime.json" "$DATA/runtime" --script "$DATA/script.yaml" --http off \
            --grpc 127.0.0.1:0
        RUNTIME=$PID
        driver=(--driver address --runtime-address "127.0.0.1:$(port_in "$DATA/runtime.json" grpc)")
    fi
    rm -f "$DATA/ports.json"
    "${RUNNER[@]}" "$WEIR" orchestrate -c bench/weir.yaml --listen 127.0.0.1:0 --data "$DATA/orchestrator" \
        --ports-file "$DATA/ports.json" "${driver[@]}" 2>"$OUT/orchestrate.log" &
    PID=$!
    PORT=$(port_in "$DATA/ports.json" orchestrator)
    for _ in $(seq 100); do
        curl -sf -o /dev/null "http://127.0.0.1:$PORT/health" && return
        sleep 0.05
    done
    say "the orchestrator did not start: $(tail -n 3 "$OUT/orchestrate.log")"
    exit 1
}

# A workspace, its conversation and a token for each client.
talks() {
    local n token
    for n in $(seq "$CLIENTS"); do
        token=$(CRAWBL_MCP_SIGNING_KEY=$KEY "$WEIR" token new --user "u-$n" --workspace "w-$n" 2>/dev/null)
        curl -sf -H "authorization: Bearer $token" \
            "http://127.0.0.1:$PORT/v1/workspaces/w-$n/conversations?limit=1" |
            sed -n "s/.*\"id\" *: *\"\\([^\"]*\\)\".*/w-$n \\1 $token/p"
        echo
    done
}

unlimited() {
    psql -qc 'UPDATE usage_plans SET monthly_token_limit = 0' "$WEIR_TEST_POSTGRES"
}

printf '%-6s %9s %12s %9s\n' driver turns/s 'CPU us/turn' failed
for round in $(seq "$ROUNDS"); do
    for driver in fake weir; do
        start $driver
        unlimited
        talks >"$DATA/talks"
        before=$(ticks)
        BENCH_TALKS=$DATA/talks taskset -c 1 wrk -t1 -c"$CLIENTS" -d "${SECONDS_EACH}s" \
            -s bench/orchestrate.lua "http://127.0.0.1:$PORT" >"$DATA/wrk" 2>&1
        awk -v driver=$driver -v ticks=$(($(ticks) - before)) '/requests in/ {count = $1}
            /^Requests\/sec/ {rate = $2} /Non-2xx|Socket errors/ {failed = $0}
            END {printf "%-6s %9.0f %12.1f %9s\n", driver, rate, count ? ticks * 10000 / count : 0,
                 failed ? failed : 0}' "$DATA/wrk" | tee -a "$DATA/rows"
        stop_all
    done
done
for driver in fake weir; do
    grep "^$driver" "$DATA/rows" | sort -nk2 | awk '{rate[NR] = $2; n = NR}
        END {print "median of turns/s, '$driver': " rate[int((n + 1) / 2)]}'
done
