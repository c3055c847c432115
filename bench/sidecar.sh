#!/usr/bin/env bash
# sidecar: what stands in front of an agent: weir sidecar, nginx as a plain proxy, Go's ReverseProxy.
#
#   bench/sidecar.sh             about two minutes
#   bench/sidecar.sh --short     some seconds: whether everything still runs
#
# The proxy is on core 0; the agent (Go) and the driver (Go) are on core 1. `weir` has no guardrails,
# `weir rules` the default ones, on requests and answers. Printed for each: turns a second, p50 and p99 of
# POST /invoke in microseconds, and CPU of the proxy for one event of /stream. At the end the ratios to nginx
# and to Go, of the medians. docs/performance.md explains the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh
DATA=$PWD/$DATA # nginx has a folder of its own

CALLERS=${BENCH_CALLERS:-16} SECONDS_EACH=${BENCH_SECONDS:-4} STREAMS=200 EVENTS=200 EVERY=20 ROUNDS=${BENCH_RUNS:-3}
if [ "${1:-}" = --short ]; then SECONDS_EACH=1 STREAMS=20 EVENTS=50 ROUNDS=1; fi
need go nginx
(cd bench/peers/proxy && go build -o ../../../"$OUT"/proxy .)
PROXY=$OUT/proxy
AGENT=

wait_for() { # file
    for _ in $(seq 300); do
        [ ! -s "$1" ] || return 0
        sleep 0.02
    done
    say "$1 was not written" && exit 1
}

taskset -c 1 "$PROXY" agent "$DATA/agent" &
AGENT=$!
trap 'stop_pid "$AGENT"; finish' EXIT
wait_for "$DATA/agent"
AGENT_URL=http://127.0.0.1:$(<"$DATA/agent")

start_weir() { # more environment...
    rm -f "$DATA/ports"
    env -i PATH="$PATH" AGENT_NAME=bench AGENT_AUTH_TOKEN=bench AGENTBREEDER_SIDECAR_AGENT_URL="$AGENT_URL" \
        AGENTBREEDER_SIDECAR_INBOUND_ADDR=127.0.0.1:0 AGENTBREEDER_SIDECAR_A2A_ADDR=off \
        AGENTBREEDER_SIDECAR_MCP_ADDR=off AGENTBREEDER_SIDECAR_COST_ADDR=off "$@" \
        "${RUNNER[@]}" "$WEIR" sidecar -c "$DATA/none.yaml" --ports-file "$DATA/ports" 2>"$OUT/sidecar.log" &
    PID=$!
    wait_for "$DATA/ports"
    URL=http://127.0.0.1:$(sed 's/.*"inbound":\([0-9]*\).*/\1/' "$DATA/ports")
}

start_nginx() { # keepalive to the agent, or nothing
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    cat >"$DATA/nginx.conf" <<CONF
daemon off; master_process off; worker_processes 1; pid $DATA/nginx.pid; error_log $DATA/nginx.log;
events { worker_connections 4096; }
http {
    access_log off; client_body_temp_path $DATA/body; proxy_temp_path $DATA/proxy; fastcgi_temp_path $DATA/f;
    uwsgi_temp_path $DATA/u; scgi_temp_path $DATA/s; keepalive_requests 1000000;
    upstream agent { server ${AGENT_URL#http://}; ${1:-} }
    server { listen 127.0.0.1:$port;
        location / { proxy_pass http://agent; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
CONF
    "${RUNNER[@]}" nginx -c "$DATA/nginx.conf" 2>/dev/null &
    PID=$!
    URL=http://127.0.0.1:$port
    for _ in $(seq 300); do
        ! curl -so /dev/null "$URL/health" || return 0
        sleep 0.02
    done
    say "nginx did not start" && exit 1
}

start_go() {
    rm -f "$DATA/go"
    GOMAXPROCS=1 "${RUNNER[@]}" "$PROXY" reverse "$DATA/go" "$AGENT_URL" &
    PID=$!
    wait_for "$DATA/go"
    URL=http://127.0.0.1:$(<"$DATA/go")
}

start() { # name
    case $1 in
    weir) start_weir WEIR_SIDECAR_DEFAULT_RULES=false ;;
    "weir rules") start_weir WEIR_SIDECAR_SCAN_ANSWERS=true ;;
    nginx) start_nginx ;;
    "nginx keepalive") start_nginx "keepalive 64;" ;;
    go) start_go ;;
    direct) PID='' URL=$AGENT_URL ;;
    esac
}

ticks() { # CPU of the proxy so far, in milliseconds
    awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) * 1000 / hz}' "/proc/$PID/stat"
}

rows=$OUT/sidecar.txt
rm -f "$rows"
printf '%-16s %9s %8s %8s %12s %8s\n' proxy turns/s p50 p99 us/event RSS
for round in $(seq "$ROUNDS"); do
    for name in direct weir "weir rules" nginx "nginx keepalive" go; do
        start "$name"
        taskset -c 1 "$PROXY" invoke "$URL" "$CALLERS" 1 >/dev/null
        read -r turns p50 p99 < <(taskset -c 1 "$PROXY" invoke "$URL" "$CALLERS" "$SECONDS_EACH")
        cost=- rss=-
        if [ -n "$PID" ]; then
            before=$(ticks)
            events=$(taskset -c 1 "$PROXY" stream "$URL" "$STREAMS" "$EVENTS" "$EVERY")
            cost=$(awk -v a="$before" -v b="$(ticks)" -v n="$events" 'BEGIN {printf "%.2f", (b - a) * 1000 / n}')
            rss=$(awk '/VmRSS/ {printf "%.1f", $2 / 1024}' "/proc/$PID/status")
        fi
        printf '%-16s %9d %8d %8d %12s %8s\n' "$name" $((turns / SECONDS_EACH)) "$p50" "$p99" "$cost" "$rss" | tee -a "$rows"
        stop
    done
done
python3 bench/sidecar_table.py "$rows"
