#!/usr/bin/env bash
# fanout: one message to every subscriber, through weir and through grpc-go, in turns.
#
#   bench/fanout.sh                    10 connections of 1,000 streams; half a minute
#   bench/fanout.sh --instructions     instructions of weir for each delivery, by callgrind
#   bench/fanout.sh --short            whether it still runs
#
# Both encode an event once. grpc-go gives it to a channel and a goroutine for each subscriber,
# which is its usual way. Server on core 0, subscribers on core 1. What a program beside them
# changes least is the server's CPU for a delivery, and the ratio of both in the same round.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

ROUNDS=${BENCH_RUNS:-3} SECONDS_EACH=${BENCH_SECONDS:-3}
CONNECTIONS=${BENCH_CONNECTIONS:-10} STREAMS=${BENCH_STREAMS:-1000}
SERVERS=${BENCH_FANOUT:-"go weir"}
PORTS=$DATA/ports.json
mode=${1:-}
if [ "$mode" = --short ]; then ROUNDS=1 SECONDS_EACH=1 CONNECTIONS=2 STREAMS=100; fi

compile_c fanout bench/{fanout,h2,proc}.c src/base/*.c -lnghttp2 -lnettle

start() { # server
    rm -rf "$PORTS" "$DATA/store"
    case $1 in
    go)
        GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go" fanout "$PORTS" & PID=$!
        PORT=$(port_in "$PORTS" grpc)
        ;;
    weir)
        printf 'log: {level: warning}\n' >"$DATA/weir.yaml"
        instant_script >"$DATA/script.yaml"
        "${RUNNER[@]}" "$WEIR" serve -c "$DATA/weir.yaml" --threads 1 --data "$DATA/store" \
            --script "$DATA/script.yaml" --http off --grpc off --nimi-http off --nimi-grpc 127.0.0.1:0 \
            --ports-file "$PORTS" 2>"$OUT/weir.log" &
        PID=$!
        PORT=$(port_in "$PORTS" nimi_grpc)
        ;;
    esac
}

ask() { taskset -c 1 "$OUT/fanout" "$PORT" "$PID" "$CONNECTIONS" "$STREAMS" "$SECONDS_EACH"; }

if [ "$mode" = --instructions ]; then
    RUNNER=(valgrind -q --tool=callgrind --separate-threads=yes --instr-atstart=no
        "--callgrind-out-file=$OUT/callgrind.fanout")
    rm -f "$OUT"/callgrind.fanout*
    start weir
    (sleep 20; callgrind_control -i on "$PID" >/dev/null 2>&1) &
    SECONDS_EACH=40 ask
    stop
    exit
fi

if [[ " $SERVERS " == *" go "* ]] && ! bench/peers/go/build.sh "$OUT" >"$OUT/go.build.log" 2>&1; then
    say "Go is left out: $(tail -n 1 "$OUT/go.build.log")"
    SERVERS=${SERVERS/go/}
fi
for round in $(seq "$ROUNDS"); do
    for server in $SERVERS; do
        start "$server"
        say "round $round of $ROUNDS: fan-out, $server"
        said=$(ask)
        printf '%s %s\n' "$server" "$said" >>"$DATA/rows"
        stop
    done
done
python3 bench/json_table.py "$DATA/rows" "$((CONNECTIONS * STREAMS)) subscribers, $CONNECTIONS connections" \
    "server_cpu_ns=server's CPU for a delivery, ns" "per_second=deliveries a second" \
    "bytes_each=memory a subscriber, bytes"
