#!/usr/bin/env bash
# h2spec: HTTP/2 conformance, strict, of every port that speaks it (row H1).
#
#   ROUNDS=20    how often
#
# On the gRPC ports every case must pass. On the HTTP port five are excused: the path that
# answers the tool's GET answers its POST with 405, at once and whole, and resets the rest, so
# what is wrong with that rest may go unseen when it comes late. The gRPC ports hear such
# requests out.
set -euo pipefail

ROUNDS=${ROUNDS:-20}
BODIES='invalid pad length|does not equal|as trailers|second HEADERS frame without'

. test/proof/grpc/serve.sh
test/proof/go/build.sh
serve_interop streams=100
serve_weir

check() { # name, port, path, excused cases
    local report=$work/report name=$1 port=$2 path=$3 excused=$4 failed
    timeout 600 "$BUILD/go/h2spec" --strict -p "$port" -P "$path" >"$report" 2>&1 || true
    failed=$(sed '/^Failures:/,$d' "$report" | grep -a '×' | grep -avE "$excused" || true)
    if [ -n "$failed" ] || ! grep -qaE '^[0-9]+ tests, [0-9]+ passed, 0 skipped' "$report"; then
        echo "h2spec: $name (round $round)"
        sed -n '/^Failures:/,$p' "$report"
        exit 1
    fi
    [ "$round" -gt 1 ] || echo "$name: $(grep -aE '^[0-9]+ tests,' "$report")"
}

for ((round = 1; round <= ROUNDS; round++)); do
    check "interop, gRPC" "$port" / '^$'
    check "weir, gRPC" "$port_grpc" / '^$'
    check "weir, HTTP" "$port_http" /health "$BODIES"
done
echo "$ROUNDS rounds"
