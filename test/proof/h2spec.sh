#!/usr/bin/env bash
# h2spec: HTTP/2 conformance, strict, of every port that speaks it (row H1).
#
#   ROUNDS=20    how often
#
# Every case must pass everywhere, also where the tool's requests are refused at their head: a
# refusal is said at once, and the rest of the request is heard out.
set -euo pipefail

ROUNDS=${ROUNDS:-20}

. test/proof/grpc/serve.sh
test/proof/go/build.sh
serve_interop streams=100
serve_weir --nimi-grpc 127.0.0.1:0
port_nimi=$(sed -n 's/.*"nimi_grpc":\([0-9]*\).*/\1/p' "$work"/weir*/ports.json)

check() { # name, port, path
    local report=$work/report name=$1 port=$2 path=$3 failed
    timeout 600 "$BUILD/go/h2spec" --strict -p "$port" -P "$path" >"$report" 2>&1 || true
    failed=$(sed '/^Failures:/,$d' "$report" | grep -a '×' || true)
    if [ -n "$failed" ] || ! grep -qaE '^[0-9]+ tests, [0-9]+ passed, 0 skipped' "$report"; then
        echo "h2spec: $name (round $round)"
        sed -n '/^Failures:/,$p' "$report"
        exit 1
    fi
    [ "$round" -gt 1 ] || echo "$name: $(grep -aE '^[0-9]+ tests,' "$report")"
}

for ((round = 1; round <= ROUNDS; round++)); do
    check "interop, gRPC" "$port" /
    check "weir, gRPC" "$port_grpc" /
    check "weir, Nimi" "$port_nimi" /
    check "weir, HTTP" "$port_http" /health
    check "weir, HTTP, POST" "$port_http" /invoke
    check "weir, HTTP, 404" "$port_http" /nothing
done
echo "$ROUNDS rounds"
