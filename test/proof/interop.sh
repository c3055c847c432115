#!/usr/bin/env bash
# interop: gRPC's own client and its fourteen cases that need no cloud (rows G1 and G19).
#
#   ROUNDS=100    each case this often, each time on a connection of its own; then as many
#                 rounds on one shared connection, then 1,000 large calls at once on one
set -euo pipefail

ROUNDS=${ROUNDS:-100}
CASES="empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
    cancel_after_begin cancel_after_first_response timeout_on_sleeping_server custom_metadata
    status_code_and_message special_status_message unimplemented_method unimplemented_service"

. test/proof/grpc/serve.sh
test/proof/go/build.sh
serve_interop streams=100

passed=0
for ((round = 0; round < ROUNDS; round++)); do
    for name in $CASES; do
        timeout 60 "$BUILD/go/interop_client" --server_host=127.0.0.1 --server_port="$port" \
            --test_case="$name" >"$work/client" 2>&1 ||
            { echo "interop: $name failed in round $round" && cat "$work/client" && exit 1; }
        passed=$((passed + 1))
    done
done
echo "$passed cases passed, a connection each"
timeout 600 "$BUILD/go/rounds" -target "127.0.0.1:$port" -rounds "$ROUNDS" -storm 1000
