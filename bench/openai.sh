#!/usr/bin/env bash
# openai: /v1/chat/completions, streamed to many callers at once, beside LiteLLM's proxy and a bare handler.
#
#   bench/openai.sh              about six minutes
#   bench/openai.sh --short      some seconds: whether everything still runs
#
# bench/model_mock.c answers SESSIONS requests. They go to the reader directly, through a handler of Go's
# that reads and writes each chunk and does nothing else (bench/peers/go/chat.go), through LiteLLM's proxy with
# one worker (bench/peers/litellm), and through weir: a turn each, parsed, kept, and written as chunks. All see
# the same mock in each round. The one under measurement runs on core 0, the mock and the reader on core 1.
#
# The first table is slow for LiteLLM's sake, which on one core may not keep it even so: then its row is empty,
# and BENCH_SESSIONS=50 shows something. The second, without it, is at 100 tokens a second for each caller.
# docs/performance.md explains the rows.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh
. bench/model_lib.sh

ROUNDS=${BENCH_RUNS:-5}
SECONDS_EACH=${BENCH_SECONDS:-8}
SESSIONS=${BENCH_SESSIONS:-500}
SLOW=${BENCH_SLOW:-2} # tokens a second for each caller, of the first table
FAST=${BENCH_FAST:-100}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=2 SESSIONS=20; fi
WAYS=${BENCH_WAYS:-"direct go weir litellm"} # of the first table
RESULTS=

finish() {
    stop
    stop_pid "$MOCK"
    rm -rf "$DATA"
}

start_go() {
    rm -f "$OUT/go-chat.json"
    OPENAI_BASE_URL=http://127.0.0.1:$MOCK_PORT taskset -c 0 "$OUT/go" chat "$OUT/go-chat.json" \
        2>"$OUT/go-chat.log" &
    PID=$!
    PORT=$(port_in "$OUT/go-chat.json" http)
}

start_weir() {
    local ports=$OUT/weir.json
    rm -rf "$ports" "${DATA:?}"/*
    OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:$MOCK_PORT/v1 \
        taskset -c 0 "$WEIR" serve -c bench/openai.yaml --threads 1 --data "$DATA" \
        --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
        --ports-file "$ports" 2>"$OUT/weir.log" &
    PID=$!
    PORT=$(port_in "$ports" http)
}

measure() { # way, round, tokens of an answer
    local way=$1 said
    local arguments=(--streams "$SESSIONS" --chunks "$3" --seconds "$SECONDS_EACH")
    PID='' PORT=$MOCK_PORT
    [ "$way" = direct ] || "start_$way"
    [ -z "$PID" ] || arguments+=(--pid "$PID")
    if said=$("$OUT/driver" tokens --port "$PORT" --path /v1/chat/completions "${arguments[@]}" \
        2>"$OUT/driver.log"); then
        printf '{"way": "%s", "round": %d, "result": %s}\n' "$way" "$2" "$said" >>"$RESULTS"
    else
        say "$way: $(cat "$OUT/driver.log")"
        printf '{"way": "%s", "round": %d, "failed": true}\n' "$way" "$2" >>"$RESULTS"
    fi
    stop
}

# One table.
compare() { # name, tokens a second, seconds in which all have begun, ways...
    local name=$1 pace=$2 tokens=$(((SECONDS_EACH + $3) * $2)) round way
    shift 3
    RESULTS=$OUT/openai-$name.jsonl
    : >"$RESULTS"
    start_mock "$tokens" "$pace"
    for round in $(seq "$ROUNDS"); do
        say "round $round of $ROUNDS: $SESSIONS callers at $pace tokens a second each, $*"
        for way; do measure "$way" "$round" "$tokens"; done
    done
    stop_pid "$MOCK"
    MOCK=
    printf '%d callers at %d tokens a second each:\n\n' "$SESSIONS" "$pace"
    python3 bench/model_table.py "$RESULTS"
    printf '\n'
}

need go taskset
compile_driver
compile_mock
bench/peers/go/build.sh "$OUT"
case $WAYS in *litellm*) bench/peers/litellm/build.sh "$OUT" ;; esac
{
    # shellcheck disable=SC2086  # it is a list
    compare slow "$SLOW" 40 $WAYS
    compare fast "$FAST" 4 direct go weir
} | tee "$OUT/openai.md"
! grep -q '"failed"' "$OUT"/openai-slow.jsonl "$OUT"/openai-fast.jsonl
