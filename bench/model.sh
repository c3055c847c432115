#!/usr/bin/env bash
# model: tokens of a model on their way to a caller, through weir and through others.
#
#   bench/model.sh               about three minutes
#   bench/model.sh --short       some seconds: whether everything still runs
#
# bench/model_mock.c answers SESSIONS requests at 100 tokens a second each. They go to the
# reader directly, through a raw forwarder (bench/peers/forwarder.c, the floor), through haproxy
# (`option http-no-delay`) and nginx (`proxy_buffering off`), which pass bytes on, and through weir
# (a turn on /stream each: parsed, kept, projected). All see the same mock in each round. The one
# under measurement runs on core 0, the mock and the reader on core 1, all on loopback, and every
# process is stopped by its own id. docs/performance.md explains the figures.
#
# BENCH_WAYS="weir litellm" BENCH_SESSIONS=20 puts LiteLLM's proxy beside it: a gateway that reads
# what it passes on, as weir does (bench/peers/litellm/build.sh installs it). It takes some 2,000
# tokens a second, which is why it is not among the ways of every run.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=${BUILD:-build}
OUT=$BUILD/bench
WEIR=${BENCH_WEIR:-$BUILD/weir}
ROUNDS=${BENCH_RUNS:-5}
SECONDS_EACH=${BENCH_SECONDS:-5}
SESSIONS=${BENCH_SESSIONS:-500}
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1 SESSIONS=20; fi
TOKENS=$(((SECONDS_EACH + 3) * 100)) # the measured part lies well inside of each turn
WAYS=${BENCH_WAYS:-"direct forwarder haproxy nginx weir"}
mkdir -p "$OUT"
RESULTS=$OUT/model.jsonl
DATA=$(mktemp -d "${BENCH_DATA:-$OUT}/data-XXXXXX")
MOCK='' MOCK_PORT='' PID='' PORT=''
: >"$RESULTS"

say() { printf 'bench: %s\n' "$*" >&2; }

compile() {
    local flags=(-std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Isrc)
    local driver=(bench/{driver,h2,turn,fleet,load,tokens,launch,samples,proc}.c)
    # shellcheck disable=SC2046  # pkg-config prints a list
    ${CC:-gcc} "${flags[@]}" "${driver[@]}" src/base/*.c \
        $(pkg-config --libs libnghttp2 nettle) -o "$OUT/driver"
    ${CC:-gcc} "${flags[@]}" bench/model_mock.c src/base/*.c -o "$OUT/model_mock"
    ${CC:-gcc} "${flags[@]}" bench/peers/forwarder.c -o "$OUT/forwarder"
}

stop() { # pid
    [ -n "$1" ] || return 0
    kill -TERM "$1" 2>/dev/null || true
    for _ in $(seq 50); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

finish() {
    stop "$PID"
    stop "$MOCK"
    rm -rf "$DATA"
}
trap finish EXIT

port_in() { # ports file
    for _ in $(seq 100); do
        [ -s "$1" ] && break
        sleep 0.05
    done
    sed -n 's/.*"http": *\([0-9]*\).*/\1/p' "$1"
}

start_mock() {
    rm -f "$OUT/mock.json"
    taskset -c 1 "$OUT/model_mock" "$OUT/mock.json" "$TOKENS" &
    MOCK=$!
    MOCK_PORT=$(port_in "$OUT/mock.json")
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Its best fair setting: one thread, no log, and small chunks passed on when they come.
start_haproxy() {
    PORT=$(free_port)
    cat >"$OUT/haproxy.cfg" <<END
global
    nbthread 1
    maxconn 4000
defaults
    mode http
    option http-no-delay
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend in
    bind 127.0.0.1:$PORT
    default_backend mock
backend mock
    server mock 127.0.0.1:$MOCK_PORT
END
    taskset -c 0 haproxy -db -f "$OUT/haproxy.cfg" 2>"$OUT/haproxy.log" &
    PID=$!
    await_port
}

await_port() {
    for _ in $(seq "${1:-100}"); do
        (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && return
        sleep 0.05
    done
}

start_forwarder() {
    rm -f "$OUT/forwarder.json"
    taskset -c 0 "$OUT/forwarder" "$OUT/forwarder.json" "$MOCK_PORT" &
    PID=$!
    PORT=$(port_in "$OUT/forwarder.json")
}

# One process, so that its CPU and memory are all of it.
start_nginx() {
    PORT=$(free_port)
    mkdir -p "$OUT/nginx"
    cat >"$OUT/nginx/nginx.conf" <<END
daemon off;
master_process off;
pid nginx.pid;
error_log error.log crit;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen 127.0.0.1:$PORT backlog=4096;
        location / {
            proxy_pass http://127.0.0.1:$MOCK_PORT;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 60s;
        }
    }
}
END
    taskset -c 0 nginx -p "$OUT/nginx" -c nginx.conf 2>"$OUT/nginx.log" &
    PID=$!
    await_port
}

start_litellm() {
    PORT=$(free_port)
    cat >"$OUT/litellm.yaml" <<END
model_list:
  - model_name: mock-1
    litellm_params: {model: openai/mock-1, api_base: "http://127.0.0.1:$MOCK_PORT/v1", api_key: none}
litellm_settings: {telemetry: false}
END
    taskset -c 0 "$OUT/litellm/bin/litellm" --config "$OUT/litellm.yaml" --host 127.0.0.1 \
        --port "$PORT" --num_workers 1 >"$OUT/litellm.log" 2>&1 &
    PID=$!
    await_port 1200
}

start_weir() {
    local ports=$OUT/weir.json
    rm -rf "$ports" "${DATA:?}"/*
    OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:$MOCK_PORT/v1 \
        taskset -c 0 "$WEIR" serve -c bench/model.yaml --threads 1 --data "$DATA" \
        --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
        --ports-file "$ports" 2>"$OUT/weir.log" &
    PID=$!
    PORT=$(port_in "$ports")
}

measure() { # way, round
    local way=$1 path=/v1/chat/completions said
    local arguments=(--streams "$SESSIONS" --chunks "$TOKENS" --seconds "$SECONDS_EACH")
    PID='' PORT=$MOCK_PORT
    case $way in
    weir) start_weir && path=/stream ;;
    direct) ;;
    *) "start_$way" ;;
    esac
    [ -z "$PID" ] || arguments+=(--pid "$PID")
    if said=$("$OUT/driver" tokens --port "$PORT" --path "$path" "${arguments[@]}" \
        2>"$OUT/driver.log"); then
        printf '{"way": "%s", "round": %d, "result": %s}\n' "$way" "$2" "$said" >>"$RESULTS"
    else
        say "$way: $(cat "$OUT/driver.log")"
        printf '{"way": "%s", "round": %d, "failed": true}\n' "$way" "$2" >>"$RESULTS"
    fi
    stop "$PID"
    PID=''
}

compile
for way in haproxy nginx; do
    command -v $way >/dev/null || { say "no $way here: it is left out"; WAYS=${WAYS/$way/}; }
done
start_mock
for round in $(seq "$ROUNDS"); do
    say "round $round of $ROUNDS: $SESSIONS models talking, $WAYS"
    for way in $WAYS; do measure "$way" "$round"; done
done
python3 bench/model_table.py "$RESULTS" | tee "$OUT/model.md"
! grep -q '"failed"' "$RESULTS"
