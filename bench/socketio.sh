#!/usr/bin/env bash
# socketio: what Socket.IO costs: time for each event, and memory for each client.
#
#   bench/socketio.sh              1,000 clients with 5,000 events a second, then 10,000 clients
#   bench/socketio.sh --short      whether it still runs
#
# The server is that of test/socketio/, on core 0; its clients are on core 1. The time includes
# the loopback and the client's own reading. An event goes to a room of one, or, in
# the rounds of `crowd`, to one room of all. Memory is measured idle, after everyone has joined.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

ROUNDS=${BENCH_RUNS:-3} SECONDS_EACH=${BENCH_SECONDS:-5}
CLIENTS=${BENCH_CLIENTS:-1000} EVENTS=${BENCH_EVENTS:-5000} IDLE=${BENCH_IDLE:-10000}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1 CLIENTS=50 EVENTS=500 IDLE=100; fi
ulimit -n "$(ulimit -Hn)"

start() { # settings...
    : >"$OUT/socketio.out"
    "${RUNNER[@]}" "$BUILD/test/socketio/socketio_server" loops=1 connections=20000 "$@" \
        >"$OUT/socketio.out" &
    PID=$!
    for _ in $(seq 100); do
        PORT=$(sed -n 's/^port //p' "$OUT/socketio.out")
        [ -n "$PORT" ] && return
        sleep 0.05
    done
    say "the server did not start"
    exit 1
}

ask() { taskset -c 1 "$OUT/socketio" "$PORT" "$PID" "$@"; }

for round in $(seq "$ROUNDS"); do
    printf 'chunks %s ' "$round"
    start chunks="$EVENTS" rooms="$CLIENTS"
    ask "$CLIENTS" "$SECONDS_EACH" "$CLIENTS"
    stop
    printf 'crowd %s ' "$round"
    start chunks="$((EVENTS / CLIENTS))" rooms=1
    ask "$CLIENTS" "$SECONDS_EACH" 1
    stop
done
printf 'memory '
start
ask "$IDLE" 0 1
stop
