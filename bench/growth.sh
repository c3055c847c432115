#!/usr/bin/env bash
# growth: what an event or a call costs when there is more of something.
#
#   bench/growth.sh              about four minutes
#   bench/growth.sh --short      some seconds: whether everything still runs
#
# Streams, one event each 20 ms: CPU an event and lateness. Turns that a session has had, and sessions
# in the store: CPU a call of POST /invoke. One and two workers: turns a second and CPU an event, where
# the second worker shares core 1 with the driver. Server on core 0, driver on core 1; the CPU is that of all
# threads. A row is to be read beside the others of its table.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

CHUNKS=250 CALL_SECONDS=3 STREAMS=("1 10" "1 100" "1 1000" "5 1000" "10 1000") STORED=(0 100000 1000000)
TURNS=(1 10 100 1000)
if [ "${1:-}" = --short ]; then
    CHUNKS=150 CALL_SECONDS=1 STREAMS=("1 10" "1 100") STORED=(0) TURNS=(1 10)
fi

need wrk
PORTS=$DATA/ports.json

field() { sed -n "s/.*\"$2\": *{*\(${3:-}\)\([0-9.]*\).*/\2/p" <<<"$1"; } # JSON line, member, what stands before

streams() { # connections, streams of each
    local said
    serve_weir "$PORTS" "$DATA/streams" --script "$DATA/paced.yaml" --grpc 127.0.0.1:0 --http off
    said=$("$OUT/driver" paced --limit 120 --port "$(port_in "$PORTS" grpc)" --pid "$PID" --key "$KEY" \
        --connections "$1" --streams "$2" --chunks "$CHUNKS") || said= # it said why; the row stays empty
    stop
    printf '| %s x %s | %s | %s | %s |\n' "$1" "$2" "$(field "$said" cpu_us_per_event)" \
        "$(field "$said" events_per_second)" "$(field "$said" late_us '"p50": [0-9]*, "p99": ')"
}

calls() { # name, folder, sessions that take turns
    local before url
    serve_weir "$PORTS" "$2" --script "$DATA/instant.yaml" --grpc off --http 127.0.0.1:0
    url=http://127.0.0.1:$(port_in "$PORTS" http)/invoke
    BENCH_SESSIONS=$3 taskset -c 1 wrk -t1 -c64 -d 1s -s bench/invoke.lua "$url" >"$DATA/wrk" # warm
    before=$(ticks)
    BENCH_SESSIONS=$3 taskset -c 1 wrk -t1 -c64 -d "${CALL_SECONDS}s" -s bench/invoke.lua "$url" >"$DATA/wrk"
    ! grep -E 'Non-2xx|Socket errors' "$DATA/wrk" || return 1
    awk -v name="$1" -v ticks=$(($(ticks) - before)) '/requests in/ {count = $1} /^Requests\/sec/ {rate = $2}
        END {printf "| %s | %.1f | %.0f |\n", name, ticks * 10000 / count, rate}' "$DATA/wrk"
    stop
}

# A session is given its turns one after the other; what the last of them costs is counted over 20 more.
history() { # turns it has had
    local url before
    serve_weir "$PORTS" "$DATA/history$1" --script "$DATA/instant.yaml" --grpc off --http 127.0.0.1:0
    url=http://127.0.0.1:$(port_in "$PORTS" http)/invoke
    turns_of_one "$url" "$1"
    before=$(cpu_ns)
    turns_of_one "$url" 20
    awk -v turns="$1" -v ns=$(($(cpu_ns) - before)) 'BEGIN {printf "| %s | %.1f |\n", turns, ns / 20000}'
    stop
}

turns_of_one() { # url, turns
    taskset -c 1 python3 - "$@" <<'EOS'
import http.client
import sys
from urllib.parse import urlsplit

url = urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
for _ in range(int(sys.argv[2])):
    connection.request("POST", url.path, '{"input": "hello", "session_id": "old"}', {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        sys.exit(f"growth: a turn was answered with {answer.status}")
EOS
}

# Nanoseconds of all threads of the server so far.
cpu_ns() { awk '{sum += $1} END {printf "%.0f", sum}' /proc/"$PID"/task/*/schedstat; }

workers() { # how many
    local said
    RUNNER=(taskset -c 0-1)
    serve_weir "$PORTS" "$DATA/workers$1" --script "$DATA/paced.yaml" --grpc 127.0.0.1:0 --http off --threads "$1"
    said=$("$OUT/driver" turns --limit 120 --port "$(port_in "$PORTS" grpc)" --pid "$PID" --key "$KEY" \
        --connections 8 --streams 32 --seconds "$CALL_SECONDS") || said=
    stop
    RUNNER=(taskset -c 0)
    printf '| %s | %s | %s |\n' "$1" "$(field "$said" turns_per_second)" "$(field "$said" cpu_us_per_event)"
}

fill() { # sessions: a store that holds them
    scripts/build "$BUILD" bench_store_bench &>"$OUT/build.log"
    "$BUILD/bench/store_bench" "$DATA" $(($1 / 100000 + 2)) 2 "$1" >"$DATA/filled"
}

compile_driver
instant_script >"$DATA/instant.yaml"
bench/script.sh "$CHUNKS" >"$DATA/paced.yaml"

printf '| connections x streams | CPU an event, us | events/s | late p99, us |\n| --- | --- | --- | --- |\n'
for pair in "${STREAMS[@]}"; do
    # shellcheck disable=SC2086  # two numbers
    streams $pair
done
printf '\n| a call of /invoke | CPU, us | calls/s |\n| --- | --- | --- |\n'
calls "the first of its session" "$DATA/first" 1000000000
calls "after 64 turns of its session" "$DATA/old" 64
for count in "${STORED[@]}"; do
    [ "$count" = 0 ] || fill "$count"
    calls "with $count sessions stored" "$DATA/$([ "$count" = 0 ] && echo none || echo 2)" 1000000000
done
printf '\n| turns that its session has had | CPU of the next, us |\n| --- | --- |\n'
for turns in "${TURNS[@]}"; do history "$turns"; done
printf '\n| workers | turns/s | CPU an event, us |\n| --- | --- | --- |\n'
for count in 1 2; do workers "$count"; done
