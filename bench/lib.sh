# lib: what the measuring scripts share. They are run from the root of the tree and begin with
#
#   . bench/lib.sh
#
# Servers run on core 0, drivers on core 1, all on loopback. Every server takes a free port, writes
# it to a file, and is stopped by its own id; DATA is a folder that is gone when the script ends.
# shellcheck shell=bash disable=SC2034  # the scripts use what is set here

BUILD=${BUILD:-build}
OUT=$BUILD/bench
WEIR=${BENCH_WEIR:-$BUILD/weir}        # another build, to compare
KEY=bench-key                          # that tokens are signed with
RUNNER=(taskset -c 0)                  # in front of a server
FIRST=()                               # in front of what runs before all else, where a script knows BENCH_FIFO=1
PID=                                   # of the server that runs
mkdir -p "$OUT"
DATA=$(mktemp -d "${BENCH_DATA:-$OUT}/data-XXXXXX")

say() { printf 'bench: %s\n' "$*" >&2; }

need() { # commands...
    local tool
    for tool; do
        command -v "$tool" >/dev/null || { say "$tool is missing: scripts/setup bench"; exit 1; }
    done
}

# --- servers ---

stop_pid() { # pid, tenths of a second that it has to end by itself
    [ -n "$1" ] || return 0
    kill -TERM "$1" 2>/dev/null || true
    for _ in $(seq "${2:-50}"); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

stop() {
    stop_pid "$PID"
    PID=
}

finish() {
    stop
    rm -rf "$DATA"
}
trap finish EXIT

# Weir as it ships, but for what is off the path that is measured. Sets PID.
serve_weir() { # ports file, data folder, arguments...
    local ports=$1 folder=$2
    shift 2
    rm -f "$ports"
    CRAWBL_MCP_SIGNING_KEY=$KEY "${RUNNER[@]}" "$WEIR" serve -c bench/weir.yaml --threads 1 \
        --data "$folder" --nimi-grpc off --nimi-http off --ports-file "$ports" "$@" \
        2>"$OUT/weir.log" &
    PID=$!
}

# The port of a listener, as soon as the server has written it. Nothing: it did not start.
port_in() { # ports file, listener
    for _ in $(seq 400); do
        [ -s "$1" ] && break
        sleep 0.05
    done
    sed -n "s/.*\"$2\": *\\([0-9]*\\).*/\\1/p" "$1" 2>/dev/null
}

# For a server that can be told its port only in its settings.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

await_port() { # port, twentieths of a second
    for _ in $(seq "${2:-100}"); do
        (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.05
    done
}

# CPU of the server so far, in ticks of 10 ms.
ticks() { awk '{print $14 + $15}' "/proc/$PID/stat"; }

# --- work ---

# The script of a short turn: two bytes, at once.
instant_script() {
    printf 'script: 1\nmodel: script\nagents:\n  - slug: manager\nscenes:\n'
    printf '  - replies:\n      - - text: ok\n          pace: {every: 0}\n'
}

# One turn that says so many events a second for so many seconds.
live_script() { # events a second, seconds
    printf 'script: 1\nmodel: script\nagents:\n  - slug: manager\nscenes:\n  - replies:\n      -\n        - text: "'
    awk -v count=$(($1 * $2)) 'BEGIN {
        for (n = 0; n < count; n++) printf "%08u the water goes on over the weir, to the mill, to sea...", n}'
    printf '"\n          pace: {every: %dms, chunk: 64}\n' $((1000 / $1))
}

compile_c() { # program, sources and libraries...
    local program=$1
    shift
    ${CC:-gcc} -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Isrc "$@" -o "$OUT/$program"
}

compile_driver() {
    # shellcheck disable=SC2046  # pkg-config prints a list
    compile_c driver bench/{driver,h2,turn,fleet,load,connections,tokens,launch,samples,proc}.c src/base/*.c \
        $(pkg-config --libs libnghttp2 nettle)
}
