#!/usr/bin/env bash
# instructions: what a turn costs in instructions, which no other program on the machine can change.
#
#   bench/instructions.sh                     about a minute
#   bench/instructions.sh converse invoke     only these loads
#   BENCH_TOP=40 bench/instructions.sh        more functions of each thread
#
# The daemon runs under callgrind, which begins to count when the load is warm.
#   converse   the turn of bench/turn.h (66 events) on 8 connections of 32 streams, each on disk
#   invoke     POST /invoke with an instant answer of two bytes, 64 connections and sessions, each on disk
#   health     GET /health on 64 connections: HTTP alone
# The profiles stay in build/bench/callgrind.LOAD, for callgrind_annotate --tree=both.
# Turns are counted in the profile (calls of run_start), and instructions are divided by them.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=${BUILD:-build}
OUT=$BUILD/bench
WEIR=${BENCH_WEIR:-$BUILD/weir}
SECONDS_EACH=${BENCH_SECONDS:-10}
KEY=bench-key
DATA=$(mktemp -d "${BENCH_DATA:-/tmp}/instructions-XXXXXX")
PID=

say() { printf 'bench: %s\n' "$*" >&2; }

stop() {
    [ -n "$PID" ] || return 0
    kill -TERM "$PID" 2>/dev/null || true
    for _ in $(seq 300); do # it writes its profile
        kill -0 "$PID" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$PID" 2>/dev/null || true
    wait "$PID" 2>/dev/null || true
    PID=
}
trap 'stop; rm -rf "$DATA"' EXIT

for tool in valgrind wrk; do
    command -v $tool >/dev/null || { say "$tool is missing: scripts/setup bench"; exit 1; }
done
[ -x "$OUT/driver" ] || { say "the driver is missing: run bench/run.sh --short first"; exit 1; }

script_of() { # load
    if [ "$1" = converse ]; then bench/script.sh; else
        printf 'script: 1\nmodel: script\nagents:\n  - slug: manager\nscenes:\n'
        printf '  - replies:\n      - - text: ok\n          pace: {every: 0}\n'
    fi
}

port_of() { # listener
    for _ in $(seq 400); do
        [ -s "$DATA/ports.json" ] && break
        sleep 0.05
    done
    sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p" "$DATA/ports.json"
}

start() { # load
    rm -rf "$DATA/ports.json" "$DATA/store" "$DATA"/callgrind.*
    script_of "$1" >"$DATA/script.yaml"
    CRAWBL_MCP_SIGNING_KEY=$KEY valgrind -q --tool=callgrind --separate-threads=yes \
        --instr-atstart=no --callgrind-out-file="$DATA/callgrind" \
        "$WEIR" serve -c bench/weir.yaml --script "$DATA/script.yaml" --threads 1 \
        --data "$DATA/store" --http 127.0.0.1:0 --grpc 127.0.0.1:0 --nimi-grpc off \
        --nimi-http off --ports-file "$DATA/ports.json" 2>"$OUT/instructions.log" &
    PID=$!
}

ask() { # load, seconds
    case $1 in
    converse)
        "$OUT/driver" turns --limit 120 --port "$(port_of grpc)" --pid "$PID" --key "$KEY" \
            --connections 8 --streams 32 --seconds "$2"
        ;;
    invoke) wrk -t1 -c64 --timeout 30s -d "$2s" -s bench/invoke.lua "http://127.0.0.1:$(port_of http)/invoke" ;;
    health) wrk -t1 -c64 --timeout 30s -d "$2s" "http://127.0.0.1:$(port_of http)/health" ;;
    esac >"$DATA/answers" 2>&1 || { cat "$DATA/answers" >&2; return 1; }
    ! grep -E 'Non-2xx|Socket errors' "$DATA/answers"
}

count() { # load
    start "$1"
    port_of http >/dev/null
    ask "$1" 1
    callgrind_control -i on "$PID" >/dev/null 2>&1
    ask "$1" "$SECONDS_EACH"
    callgrind_control -i off "$PID" >/dev/null 2>&1
    stop
    rm -rf "$OUT/callgrind.$1"
    mkdir -p "$OUT/callgrind.$1"
    mv "$DATA"/callgrind-* "$OUT/callgrind.$1/"
    python3 bench/instructions.py "$1" "${BENCH_TOP:-0}" "$OUT/callgrind.$1"/*
}

loads=("$@")
[ $# -gt 0 ] || loads=(converse invoke health)
for load in "${loads[@]}"; do count "$load"; done | tee "$OUT/instructions.txt"
