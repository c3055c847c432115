#!/usr/bin/env bash
# run: measure weir beside the gRPC servers of C++, Go and Rust and beside the floor, and show it
# beside what was kept.
#
#   make bench                          with start, calls, model, growth, late, live, fanout, invoke, instructions.sh
#   BENCH_SECONDS=5 BENCH_PACED_SECONDS=30 make bench    about twenty
#   bench/run.sh --short                one round: whether everything still runs
#
# Servers run on core 0, the driver on core 1, all on loopback, one server at a time, in turn
# within each round. Every process is stopped by its own id. docs/performance.md explains the
# figures; the newest are in build/bench/latest.json and build/bench/figures.md.
set -euo pipefail
cd "$(dirname "$0")/.."

SHORT=()
BRIEF=()
if [ "${1:-}" = --short ]; then
    SHORT=(--short)
    BRIEF=(--brief)
    BENCH_RUNS=1 BENCH_SECONDS=1 BENCH_PACED_SECONDS=2 BENCH_TRIES=1
fi
. bench/lib.sh

RUNS=${BENCH_RUNS:-5}                       # rounds
SECONDS_EACH=${BENCH_SECONDS:-2}            # of turns
PACED_SECONDS=${BENCH_PACED_SECONDS:-3}     # length of a paced turn
SERVERS=${BENCH_SERVERS:-"floor grpc-cpp grpc-go tonic weir weir-off"}
TRIES=${BENCH_TRIES:-3}                     # for a run in which nobody else used the cores
CHUNKS=$((PACED_SECONDS * 50))
MEMORY_CHUNKS=200
QUIET=200                                   # thousandths of a core
LIMIT=$((PACED_SECONDS + SECONDS_EACH + 90)) # after which the driver gives up
RESULTS=$OUT/runs.jsonl
PORT=
: >"$RESULTS"

# Each peer is built the first time and when its source is newer; without its compiler it is left out.
compile_grpc_cpp() {
    [ "$OUT/grpc-cpp" -nt bench/peers/grpc_cpp.cc ] && return
    command -v grpc_cpp_plugin >/dev/null || return 1
    mkdir -p "$OUT/gen"
    protoc -I proto/agentruntime/v1 --cpp_out="$OUT/gen" --grpc_out="$OUT/gen" \
        --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" runtime.proto
    # shellcheck disable=SC2046
    ${CXX:-g++} -std=c++17 -O2 -Wall -Wextra -I"$OUT/gen" bench/peers/grpc_cpp.cc \
        "$OUT"/gen/runtime.pb.cc "$OUT"/gen/runtime.grpc.pb.cc \
        $(pkg-config --libs grpc++ protobuf) -o "$OUT/grpc-cpp"
}

compile_grpc_go() { bench/peers/go/build.sh "$OUT"; }
compile_tonic() { bench/peers/tonic/build.sh "$OUT"; }

compile_peers() {
    local peer
    for peer in grpc-cpp grpc-go tonic; do
        [[ " $SERVERS " == *" $peer "* ]] || continue
        "compile_${peer//-/_}" >"$OUT/$peer.build.log" 2>&1 && continue
        say "$peer is left out: $(tail -n 1 "$OUT/$peer.build.log")"
        SERVERS=" $SERVERS " SERVERS=${SERVERS/ $peer / }
    done
}

start() { # server
    local ports=$DATA/ports.json durability=full
    rm -rf "$ports" "$DATA/store"
    case $1 in
    floor | grpc-cpp | tonic) "${RUNNER[@]}" "$OUT/$1" "$ports" 2>"$OUT/$1.log" & PID=$! ;;
    grpc-go) GOMAXPROCS=1 "${RUNNER[@]}" "$OUT/go" converse "$ports" 2>"$OUT/$1.log" & PID=$! ;;
    weir | weir-off)
        [ "$1" = weir ] || durability=off
        serve_weir "$ports" "$DATA/store" --script "$OUT/script.yaml" --durability $durability \
            --grpc 127.0.0.1:0 --http 127.0.0.1:0
        ;;
    esac
    PORT=$(port_in "$ports" grpc)
    [ -n "$PORT" ] || { say "$1 did not start: $(tail -n 3 "$OUT/${1%-off}.log")"; return 1; }
}

# One line of the results: server, round, what the driver said, or why there is nothing.
keep() { # server, round, mode, driver arguments...
    local server=$1 round=$2 mode=$3 said=
    shift 3
    said=$("$OUT/driver" "$mode" --limit "$LIMIT" "$@" 2>"$OUT/driver.log") || said=
    keep_line "$server" "$round" "$mode" "$said"
}

keep_line() { # server, round, mode, what the driver said
    if [ -n "$4" ]; then
        printf '{"server": "%s", "round": %d, "result": %s}\n' "$1" "$2" "$4"
    else
        say "$1: $(cat "$OUT/driver.log")"
        printf '{"server": "%s", "round": %d, "failed": "%s"}\n' "$1" "$2" "$3"
    fi >>"$RESULTS"
}

# How much of the cores somebody else used, in thousandths.
others() { # what the driver said
    sed -n 's/.*"others_cpu": \([0-9]*\)\.\([0-9]*\).*/\1\2/p' <<<"$1" | sed 's/^0*//;s/^$/0/'
}

# Measure the running server. A run that others disturbed is made again, and of several the
# least disturbed one counts, whatever its figure; a wrong byte counts as it is.
ask() { # server, round, mode, driver arguments...
    local server=$1 round=$2 mode=$3 best= said
    shift 3
    for _ in $(seq "$TRIES"); do
        said=$("$OUT/driver" "$mode" --limit "$LIMIT" --port "$PORT" --pid "$PID" --key "$KEY" \
            "$@" 2>"$OUT/driver.log") || { best= && break; }
        [ -n "$best" ] && [ "$(others "$best")" -le "$(others "$said")" ] || best=$said
        [[ $mode != memory && $(others "$best") -gt $QUIET ]] || break
    done
    keep_line "$server" "$round" "$mode" "$best"
}

measure_rounds() {
    for round in $(seq "$RUNS"); do
        for server in $SERVERS; do
            say "round $round of $RUNS: $server"
            start "$server" || continue
            ask "$server" "$round" turns --connections 8 --streams 32 --seconds "$SECONDS_EACH"
            if [ "$server" != weir-off ]; then
                ask "$server" "$round" paced --connections 1 --streams 1000 --chunks "$CHUNKS"
                ask "$server" "$round" paced --connections 100 --streams 10 --chunks "$CHUNKS"
            fi
            stop
        done
    done
}

measure_memory() {
    for server in $SERVERS; do
        [ "$server" != weir-off ] || continue
        say "memory: $server"
        start "$server" || continue
        ask "$server" 1 memory --connections 1 --streams 1000 --chunks "$MEMORY_CHUNKS" \
            "${BRIEF[@]}"
        stop
        [[ $server = weir* ]] || continue
        start "$server" || continue
        ask "$server" 1 memory --connections 10 --streams 1000 --chunks 0 "${BRIEF[@]}"
        stop
    done
}

# Of weir alone, whose door for HTTP speaks both versions.
measure_connections() {
    case " $SERVERS " in *" weir "*) ;; *) return ;; esac
    say "connections: weir"
    WEIR_LIMIT_CONNECTIONS=4096 start weir || return 0
    keep weir 1 connections --port "$(port_in "$DATA/ports.json" http)" --pid "$PID" --connections 1000
    stop
}

measure_start() {
    local arguments=(serve -c bench/weir.yaml --script "$OUT/script.yaml" --threads 1
        --data "$DATA/start" --nimi-grpc off --nimi-http off)
    say "start"
    export CRAWBL_MCP_SIGNING_KEY=$KEY
    keep weir 1 start --probe health -- "$WEIR" "${arguments[@]}" \
        --http '127.0.0.1:{port}' --grpc 127.0.0.1:0
    keep weir 1 start --probe settings -- "$WEIR" "${arguments[@]}" \
        --grpc '127.0.0.1:{port}' --http 127.0.0.1:0
    unset CRAWBL_MCP_SIGNING_KEY
    [ ! -x "$OUT/grpc-cpp" ] ||
        keep grpc-cpp 1 start --probe settings -- "$OUT/grpc-cpp" --address '127.0.0.1:{port}'
    keep disk 1 disk --folder "$DATA"
}

# Another bench: what it prints becomes a part of the page.
more() { # heading, script and its arguments
    printf '\n## %s\n\n' "$1" >>"$OUT/figures.md"
    shift
    BUILD=$BUILD BENCH_WEIR=$WEIR "$@" | tee -a "$OUT/figures.md"
}

compile_driver
compile_c floor bench/floor.c src/base/*.c
compile_peers
bench/script.sh "$CHUNKS" "$MEMORY_CHUNKS" >"$OUT/script.yaml"
measure_rounds
measure_memory
measure_connections
measure_start
python3 bench/table.py "$RESULTS" "$OUT" bench/figures.md
more "A start" bench/start.sh "${SHORT[@]}"
more "Short calls" bench/calls.sh "${SHORT[@]}"
more "Tokens of a model" bench/model.sh "${SHORT[@]}"
more "Growth" bench/growth.sh "${SHORT[@]}"
more "Late readers" bench/late.sh "${SHORT[@]}"
more "Live readers" bench/live.sh "${SHORT[@]}"
more "One event to all subscribers" bench/fanout.sh "${SHORT[@]}"
more "A short durable turn" bench/invoke.sh "${SHORT[@]}"
if command -v valgrind >/dev/null; then
    more "Instructions" bench/instructions.sh "${SHORT[@]}"
else
    say "instructions are left out: valgrind is missing"
fi
python3 bench/chart.py "$OUT/figures.md" "$OUT/charts"
say "kept figures: bench/figures.md; these: $OUT/latest.json, $OUT/figures.md, $OUT/charts"
