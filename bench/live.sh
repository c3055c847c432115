#!/usr/bin/env bash
# live: thousands of readers of one live run, each on an HTTP/1.1 connection of its own.
#
#   bench/live.sh                about six minutes
#   bench/live.sh --short        some seconds: whether everything still runs
#
# One run says 50 or 250 events a second; all read /weir/v1/runs/{id}/events. Beside weir, in turn
# within each round: a floor that sends the same number of bytes to each socket, one send() an
# event (bench/live_floor.c), and Go's net/http with a channel of 256 events a reader
# (bench/peers/go/live.go). Server on core 0, readers on core 1. A reader that misses an event or
# gets one twice is counted: such a row is not a valid one, and the script fails if it is weir's.
# docs/performance.md explains the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

REST=4 # seconds after which a fresh weir has given its start's memory back
ROUNDS=${BENCH_RUNS:-3} SECONDS_EACH=${BENCH_SECONDS:-4}
read -ra LOADS <<<"${BENCH_LOADS:-50x5000 250x1000 250x5000}" # events a second x readers
SERVERS=${BENCH_LIVE:-"floor go weir"}
[ -z "${BENCH_FIFO:-}" ] || FIRST=(chrt -f 5) # server and readers
RUNNER=("${FIRST[@]}" "${RUNNER[@]}")
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1 LOADS=(50x100) REST=0; fi
RESULTS=$OUT/live.jsonl
PORTS=$DATA/ports.json
: >"$RESULTS"

start() { # server, events a second
    rm -rf "$PORTS" "$DATA/store"
    case $1 in
    floor) "${RUNNER[@]}" "$OUT/live_floor" "$PORTS" "$2" & PID=$! ;;
    go) BENCH_RATE=$2 GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go" live "$PORTS" & PID=$! ;;
    weir)
        live_script "$2" $((SECONDS_EACH + 30)) >"$DATA/script.yaml"
        printf 'log: {level: warning}\nlimits: {connections: 16000}\n' >"$DATA/weir.yaml"
        "${RUNNER[@]}" "$WEIR" serve -c "$DATA/weir.yaml" --script "$DATA/script.yaml" --threads 1 \
            --data "$DATA/store" --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
            --ports-file "$PORTS" 2>"$OUT/weir.log" &
        PID=$!
        ;;
    esac
    PORT=$(port_in "$PORTS" http)
}

measure() { # server, round, load
    local rate=${3%x*} readers=${3#*x} kind=other said
    [ "$1" != weir ] || kind=weir
    start "$1" "$rate"
    sleep "$REST"
    said=$("${FIRST[@]}" taskset -c 1 "$OUT/live_readers" "$kind" "$PORT" "$PID" "$readers" "$SECONDS_EACH") || said=null
    printf '{"server": "%s", "round": %d, "load": "%s", "result": %s}\n' "$1" "$2" "$3" "$said" >>"$RESULTS"
    stop
}

compile_c live_floor bench/live_floor.c
compile_c live_readers bench/{live_readers,samples,proc}.c src/base/*.c -lnettle
if [[ " $SERVERS " == *" go "* ]] && ! bench/peers/go/build.sh "$OUT" >"$OUT/go.build.log" 2>&1; then
    say "Go is left out: $(tail -n 1 "$OUT/go.build.log")"
    SERVERS=${SERVERS/go/}
fi
ulimit -n "$(ulimit -Hn)"
for round in $(seq "$ROUNDS"); do
    for load in "${LOADS[@]}"; do
        for server in $SERVERS; do
            say "round $round of $ROUNDS: live readers, $load, $server"
            measure "$server" "$round" "$load"
        done
    done
done
python3 bench/live_table.py "$RESULTS"
