#!/usr/bin/env bash
# instructions: what a turn costs in instructions, which no other program on the machine can change.
#
#   bench/instructions.sh                     about a minute
#   bench/instructions.sh converse invoke     only these loads
#   bench/instructions.sh --short             seconds: whether everything still runs
#   BENCH_TOP=40 bench/instructions.sh        more functions of each thread
#
#   BENCH_PATH=/v1/messages bench/instructions.sh model       tokens through another contract than /stream
#   WEIR_ADMIN=127.0.0.1:0 bench/instructions.sh converse     with metrics
#   BENCH_SPANS=1 bench/instructions.sh converse              with spans, for a collector that takes them all
#
# The daemon runs under callgrind, which begins to count when the load is warm.
#   converse   the turn of bench/turn.h (66 events) on 8 connections of 32 streams, each on disk
#   stream     the same turn as server-sent events: POST /stream on 64 connections and sessions
#   invoke     POST /invoke with an instant answer of two bytes, 64 connections and sessions, each on disk
#   model      a token of a model: bench/model_mock.c answers 20 turns of POST /stream, counted amid them
#   model_h2   the same with HTTP/2 at both ends: 100 turns on one connection to the model, with TLS, and
#              on four from the callers. BENCH_STREAMS and BENCH_PACE (tokens a second of each) change the load
#   model_h2c  the same without TLS
#   live       one event to each of 200 readers of a run (GET /weir/v1/runs/{id}/events), 50 events a second
#   health     GET /health on 64 connections: HTTP alone
# The profiles stay in build/bench/callgrind.LOAD, for callgrind_annotate --tree=both.
# Turns are counted in the profile (calls of run_start; for the model, chunks that are read; for live readers, what
# is sent to one), and instructions are divided by them.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh
. bench/model_lib.sh

SECONDS_EACH=${BENCH_SECONDS:-10}
LIVE_READERS=200 LIVE_RATE=50
RUNNER=(valgrind -q --tool=callgrind --separate-threads=yes --instr-atstart=no
    "--callgrind-out-file=$DATA/callgrind")
PORTS=$DATA/ports.json
COLLECTOR=

finish() {
    stop
    stop_pid "$MOCK"
    stop_pid "$COLLECTOR"
    rm -rf "$DATA"
}

script_of() { # load
    case $1 in
    converse | stream) bench/script.sh ;;
    live) live_script "$LIVE_RATE" $((SECONDS_EACH + 60)) ;;
    *) instant_script ;;
    esac
}

ask() { # load, seconds
    case $1 in
    converse)
        "$OUT/driver" turns --limit 120 --port "$(port_in "$PORTS" grpc)" --pid "$PID" --key "$KEY" \
            --connections 8 --streams 32 --seconds "$2"
        ;;
    invoke | stream) wrk -t1 -c64 --timeout 30s -d "$2s" -s bench/invoke.lua "http://127.0.0.1:$(port_in "$PORTS" http)/$1" ;;
    health) wrk -t1 -c64 --timeout 30s -d "$2s" "http://127.0.0.1:$(port_in "$PORTS" http)/health" ;;
    esac >"$DATA/answers" 2>&1 || { cat "$DATA/answers" >&2; return 1; }
    ! grep -E 'Non-2xx|Socket errors' "$DATA/answers"
}

# A model that says 100 tokens a second to each of 20 callers, of which only the steady part is counted.
count_model() { # load
    local streams=20 pace=100 settings=bench/model.yaml address=http://localhost said=()
    case $1 in
    model_h2) address=https://localhost ;;&
    model_h2 | model_h2c)
        streams=100 settings=$OUT/sharing.yaml said=(--http2 4)
        sharing_settings >"$settings"
        ;;
    esac
    streams=${BENCH_STREAMS:-$streams} pace=${BENCH_PACE:-$pace}
    compile_mock
    start_mock $(((SECONDS_EACH + 5) * pace)) "$pace"
    export OPENAI_API_KEY=none OPENAI_BASE_URL=$address:$MOCK_PORT/v1 SSL_CERT_FILE=$OUT/mock.pem SSL_CERT_DIR=
    # No key, so that callers of every contract need no token.
    KEY='' serve_weir "$PORTS" "$DATA/store" -c "$settings" --http 127.0.0.1:0 --grpc off
    "$OUT/driver" tokens --path "${BENCH_PATH:-/stream}" --port "$(port_in "$PORTS" http)" --pid "$PID" --streams "$streams" \
        --chunks $(((SECONDS_EACH + 5) * pace)) --seconds "$SECONDS_EACH" "${said[@]}" >"$DATA/answers" &
    local driver=$!
    sleep 2
    callgrind_control -i on "$PID" >/dev/null 2>&1
    sleep "$SECONDS_EACH"
    callgrind_control -i off "$PID" >/dev/null 2>&1
    wait "$driver"
    stop_pid "$MOCK"
    MOCK=
}

# Readers that are all in the middle of the same run. No key, so that they need no token.
count_live() {
    local readers failed=0
    compile_c live_readers bench/{live_readers,samples,proc}.c src/base/*.c -lnettle
    script_of live >"$DATA/script.yaml"
    KEY='' serve_weir "$PORTS" "$DATA/store" --script "$DATA/script.yaml" --http 127.0.0.1:0 --grpc off
    "$OUT/live_readers" weir "$(port_in "$PORTS" http)" "$PID" "$LIVE_READERS" $((SECONDS_EACH + 8)) alone \
        >"$DATA/answers" &
    readers=$!
    sleep 8 # all have begun
    callgrind_control -i on "$PID" >/dev/null 2>&1
    sleep "$SECONDS_EACH"
    callgrind_control -i off "$PID" >/dev/null 2>&1
    wait "$readers" || failed=1
    grep -q '"all_begun": true, "wrong": 0,' "$DATA/answers" || failed=1
    [ "$failed" = 0 ] || { cat "$DATA/answers" >&2; stop; return 1; }
}

count_load() { # load
    script_of "$1" >"$DATA/script.yaml"
    serve_weir "$PORTS" "$DATA/store" --script "$DATA/script.yaml" --http 127.0.0.1:0 --grpc 127.0.0.1:0
    port_in "$PORTS" http >/dev/null
    ask "$1" 1
    callgrind_control -i on "$PID" >/dev/null 2>&1
    ask "$1" "$SECONDS_EACH"
    callgrind_control -i off "$PID" >/dev/null 2>&1
}

count() { # load
    rm -rf "$DATA/store" "$DATA"/callgrind*
    case $1 in
    model*) count_model "$1" ;;
    live) count_live ;;
    *) count_load "$1" ;;
    esac
    stop_pid "$PID" 300 # it writes its profile
    PID=
    rm -rf "$OUT/callgrind.$1"
    mkdir -p "$OUT/callgrind.$1"
    mv "$DATA"/callgrind-* "$OUT/callgrind.$1/"
    python3 bench/instructions.py "$1" "${BENCH_TOP:-0}" "$OUT/callgrind.$1"/*
}

need valgrind wrk
compile_driver
if [ -n "${BENCH_SPANS:-}" ]; then
    python3 bench/collector.py "$DATA/collector" &
    COLLECTOR=$!
    for _ in $(seq 300); do
        if [ -s "$DATA/collector" ]; then break; fi
        sleep 0.02
    done
    WEIR_OTLP_ENDPOINT=http://127.0.0.1:$(<"$DATA/collector")
    export WEIR_OTLP_ENDPOINT
fi
loads=("$@")
if [ "${1:-}" = --short ]; then SECONDS_EACH=3 loads=(invoke); fi
[ "${#loads[@]}" -gt 0 ] || loads=(converse stream invoke model model_h2 live health)
{
    trap finish EXIT # of this shell: what is left running would hold the pipe open
    for load in "${loads[@]}"; do count "$load"; done
} | tee "$OUT/instructions.txt"
# What was said, as a table.
awk 'BEGIN {print "\n| thousand instructions | all | loop | store |\n| --- | --- | --- | --- |"}
    / thousand instructions each / {
        store = "-"; loop = "-"
        if (match($0, /loop [0-9.]+/)) loop = substr($0, RSTART + 5, RLENGTH - 5)
        if (match($0, /store [0-9.]+/)) store = substr($0, RSTART + 6, RLENGTH - 6)
        sub(":", "", $1); printf "| %s | %s | %s | %s |\n", $1, $2, loop, store
    }' "$OUT/instructions.txt"
