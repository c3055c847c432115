# serve: sourced by the proofs. Starts a server of ours and sets `port`; it is ended with the
# script, and must leave in order.
#
#   serve_interop [name=value ...]      the test service
#   serve_weir [settings ...]           the daemon: port_http, port_grpc

BUILD=${BUILD:-build}
work=$(mktemp -d)
servers=()

stop_servers() {
    local status=$? server
    trap - EXIT
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    for server in "${servers[@]}"; do
        wait "$server" || { echo "a server ended with $?" >&2 && status=1; }
    done
    servers=()
    if [ "$status" -ne 0 ]; then cat "$work"/*.err >&2 || true; fi
    rm -rf "$work"
    exit "$status"
}
trap stop_servers EXIT

wait_for() { # until a file is there and not empty
    local tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || { echo "no server came up" >&2 && exit 1; }
        sleep 0.02
    done
}

serve_interop() {
    local out=$work/interop${#servers[@]}
    "$BUILD/test/interop/interop_server" "$@" >"$out" 2>"$out.err" &
    servers+=($!)
    wait_for "$out"
    port=$(sed -n 's/^port //p' "$out")
}

serve_weir() {
    local folder=$work/weir${#servers[@]}
    mkdir "$folder"
    "$BUILD/weir" serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --data "$folder/data" \
        --ports-file "$folder/ports.json" "$@" >"$folder.out" 2>"$folder.err" </dev/null &
    servers+=($!)
    wait_for "$folder/ports.json"
    port_http=$(sed -n 's/.*"http":\([0-9]*\).*/\1/p' "$folder/ports.json")
    port_grpc=$(sed -n 's/.*"grpc":\([0-9]*\).*/\1/p' "$folder/ports.json")
}
