#!/usr/bin/env bash
# model: tokens of a model on their way to a caller, through weir and through others.
#
#   bench/model.sh               about four minutes
#   bench/model.sh --short       some seconds: whether everything still runs
#   BENCH_SESSIONS="100 500 1000" bench/model.sh    a table for each number of turns at the same time
#   BENCH_FIFO=1 bench/model.sh                     all that is measured before all else that runs
#
# bench/model_mock.c answers 500 requests (BENCH_SESSIONS) at 100 tokens a second each. They go to the
# reader directly, through a raw forwarder (bench/peers/forwarder.c, the floor), through haproxy
# (`option http-no-delay`) and nginx (`proxy_buffering off`), which pass bytes on, and through weir
# (a turn on /stream each: parsed, kept, projected). All see the same mock in each round. The one
# under measurement runs on core 0, the mock and the reader on core 1, all on loopback, and every
# process is stopped by its own id. docs/performance.md explains the figures.
#
# BENCH_WAYS="weir weir_tls nginx_tls" asks the mock over TLS, too: haproxy stands before it on core 1.
# With BENCH_BEFORE, another weir, the ways before and before_tls measure that one.
#
# weir_h2 speaks HTTP/2 at both ends: the reader has four connections for all turns (BENCH_CONNECTIONS=1:
# one), and the mock speaks HTTP/2 over TLS to weir, with room for a thousand of them on one connection.
# weir_h2c is the same without TLS. The forwarder of the same run has a socket a turn at both ends, and no
# TLS. before_h2 and before_h2c are the same with BENCH_BEFORE. BENCH_WAYS="forwarder weir_h2 weir_h2c"
# measures only these.
#
# BENCH_WAYS="weir litellm" BENCH_SESSIONS=20 puts LiteLLM's proxy beside it: a gateway that reads
# what it passes on, as weir does (bench/peers/litellm/build.sh installs it). It takes some 2,000
# tokens a second, which is why it is not among the ways of every run.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh
. bench/model_lib.sh

[ -z "${BENCH_FIFO:-}" ] || FIRST=(chrt -f 5)
ROUNDS=${BENCH_RUNS:-5}
SECONDS_EACH=${BENCH_SECONDS:-5}
LOADS=${BENCH_SESSIONS:-500}
CONNECTIONS=${BENCH_CONNECTIONS:-4} # of the reader, with HTTP/2
if [ "${1:-}" = --short ]; then ROUNDS=1 SECONDS_EACH=1 LOADS=20; fi
TOKENS=$(((SECONDS_EACH + 3) * 100)) # the measured part lies well inside of each turn
WAYS=${BENCH_WAYS:-"direct forwarder haproxy nginx weir weir_h2 weir_h2c"}
SEALER='' SEALED_PORT=''
FAILED=0

compile() {
    compile_driver
    compile_mock
    compile_c forwarder bench/peers/forwarder.c
}

finish() {
    stop
    stop_pid "$SEALER"
    stop_pid "$MOCK"
    rm -rf "$DATA"
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
    "${FIRST[@]}" taskset -c 0 haproxy -db -f "$OUT/haproxy.cfg" 2>"$OUT/haproxy.log" &
    PID=$!
    await_port "$PORT"
}

start_forwarder() {
    rm -f "$OUT/forwarder.json"
    "${FIRST[@]}" taskset -c 0 "$OUT/forwarder" "$OUT/forwarder.json" "$MOCK_PORT" &
    PID=$!
    PORT=$(port_in "$OUT/forwarder.json" http)
}

# The mock over TLS and HTTP/1.1, for the ways that end in _tls.
start_sealer() {
    SEALED_PORT=$(free_port)
    cat "$OUT/mock.key" "$OUT/mock.pem" >"$OUT/mock.both"
    cat >"$OUT/sealer.cfg" <<END
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
    bind 127.0.0.1:$SEALED_PORT ssl crt $OUT/mock.both
    default_backend mock
backend mock
    server mock 127.0.0.1:$MOCK_PORT
END
    "${FIRST[@]}" taskset -c 1 haproxy -db -f "$OUT/sealer.cfg" 2>"$OUT/sealer.log" &
    SEALER=$!
    PORT=$SEALED_PORT
    await_port "$PORT"
}

# One process, so that its CPU and memory are all of it.
start_nginx() { # address of the model
    local checks=''
    [ -z "${1:-}" ] || checks="proxy_ssl_verify on; proxy_ssl_trusted_certificate ../mock.pem;
            proxy_ssl_name localhost; proxy_ssl_server_name on;"
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
            proxy_pass ${1:-http://127.0.0.1:$MOCK_PORT};
            $checks
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 60s;
        }
    }
}
END
    "${FIRST[@]}" taskset -c 0 nginx -p "$OUT/nginx" -c nginx.conf 2>"$OUT/nginx.log" &
    PID=$!
    await_port "$PORT"
}

start_nginx_tls() { start_nginx "https://127.0.0.1:$SEALED_PORT"; }
start_weir_tls() { start_weir "$WEIR" "https://localhost:$SEALED_PORT"; }
start_weir_h2() { start_weir "$WEIR" "https://localhost:$MOCK_PORT" "$OUT/sharing.yaml"; }
start_weir_h2c() { start_weir "$WEIR" "http://localhost:$MOCK_PORT" "$OUT/sharing.yaml"; }
start_before() { start_weir "$BENCH_BEFORE"; }
start_before_h2() { start_weir "$BENCH_BEFORE" "https://localhost:$MOCK_PORT" "$OUT/sharing.yaml"; }
start_before_h2c() { start_weir "$BENCH_BEFORE" "http://localhost:$MOCK_PORT" "$OUT/sharing.yaml"; }
start_before_tls() { start_weir "$BENCH_BEFORE" "https://localhost:$SEALED_PORT"; }

start_weir() { # program, address of the model, settings
    local ports=$OUT/weir.json
    rm -rf "$ports" "${DATA:?}"/*
    OPENAI_API_KEY=none OPENAI_BASE_URL=${2:-http://127.0.0.1:$MOCK_PORT}/v1 \
        SSL_CERT_FILE=$OUT/mock.pem SSL_CERT_DIR='' \
        "${FIRST[@]}" taskset -c 0 "${1:-$WEIR}" serve -c "${3:-bench/model.yaml}" --threads 1 --data "$DATA" \
        --http 127.0.0.1:0 --grpc off --nimi-grpc off --nimi-http off \
        --ports-file "$ports" 2>"$OUT/weir.log" &
    PID=$!
    PORT=$(port_in "$ports" http)
}

measure() { # way, round, turns
    local way=$1 path=/v1/chat/completions said
    local arguments=(--streams "$3" --chunks "$TOKENS" --seconds "$SECONDS_EACH")
    PID='' PORT=$MOCK_PORT
    case $way in
    weir | before | weir_tls | before_tls) "start_$way" && path=/stream ;;
    weir_h2 | before_h2 | weir_h2c | before_h2c)
        "start_$way" && path=/stream
        arguments+=(--http2 "$CONNECTIONS")
        ;;
    direct) ;;
    *) "start_$way" ;;
    esac
    [ -z "$PID" ] || arguments+=(--pid "$PID")
    if said=$("${FIRST[@]}" "$OUT/driver" tokens --port "$PORT" --path "$path" "${arguments[@]}" \
        2>"$OUT/driver.log"); then
        printf '{"way": "%s", "round": %d, "result": %s}\n' "$way" "$2" "$said" >>"$RESULTS"
    else
        say "$way: $(cat "$OUT/driver.log")"
        printf '{"way": "%s", "round": %d, "failed": true}\n' "$way" "$2" >>"$RESULTS"
    fi
    stop
}

compile
for way in haproxy nginx; do
    command -v $way >/dev/null || { say "no $way here: it is left out"; WAYS=${WAYS/$way/}; }
done
start_mock "$TOKENS"
sharing_settings >"$OUT/sharing.yaml"
case $WAYS in *_tls*) start_sealer ;; esac
: >"$OUT/model.md"
for sessions in $LOADS; do
    RESULTS=$OUT/model_$sessions.jsonl
    : >"$RESULTS"
    for round in $(seq "$ROUNDS"); do
        say "round $round of $ROUNDS: $sessions models talking, $WAYS"
        for way in $WAYS; do measure "$way" "$round" "$sessions"; done
    done
    { python3 bench/model_table.py "$RESULTS" && echo; } | tee -a "$OUT/model.md"
    ! grep -q '"failed"' "$RESULTS" || FAILED=1
done
exit "$FAILED"
