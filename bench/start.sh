#!/usr/bin/env bash
# start: how long from exec to the first answer, beside Go's servers.
#
#   bench/start.sh               about half a minute
#   bench/start.sh --short       a few starts of each
#
# 8 agents, 20 tools with schemas and a store with 1,000 sessions; Go's servers have nothing to read.
# The page cache is warm. Server on core 0, client on core 1; the servers take turns.
set -euo pipefail
cd "$(dirname "$0")/.."

. bench/lib.sh

ROUNDS=${BENCH_RUNS:-5}
STARTS=20
if [ "${1:-}" = --short ]; then ROUNDS=1 STARTS=5; fi
RESULTS=$OUT/start.jsonl
: >"$RESULTS"

team() {
    printf 'script: 1\nmodel: script\nagents:\n'
    for agent in manager researcher writer coder tester planner librarian clerk; do
        printf '  - slug: %s\n    description: Does what a %s does.\n' $agent $agent
    done
    printf 'tools:\n'
    for tool in $(seq 20); do
        cat <<TOOL
  - name: tool_$tool
    description: Looks up one thing and reports what it found.
    parameters:
      type: object
      properties:
        query: {type: string, description: What is looked for}
        limit: {type: integer, minimum: 1, maximum: 100}
      required: [query]
    result: {found: nothing, count: 0}
TOOL
    done
    printf 'scenes:\n  - reply: ok\n'
}

measure() { # server, probe, program and its arguments...
    local server=$1 probe=$2 said
    shift 2
    said=$("$OUT/driver" start --limit 60 --probe "$probe" --runs "$STARTS" -- "$@")
    printf '{"server": "%s", "result": %s}\n' "$server" "$said" >>"$RESULTS"
}

measure_weir() {
    local arguments=(serve -c bench/weir.yaml --script "$DATA/team.yaml" --threads 1
        --data "$DATA/2" --nimi-grpc off --nimi-http off)
    measure weir health "$WEIR" "${arguments[@]}" --http '127.0.0.1:{port}' --grpc 127.0.0.1:0
    measure weir settings "$WEIR" "${arguments[@]}" --grpc '127.0.0.1:{port}' --http 127.0.0.1:0
}

measure_go() {
    [ -x "$OUT/go" ] || return 0
    measure go health "$OUT/go" http "$DATA/go.json" '127.0.0.1:{port}'
    measure go settings "$OUT/go" converse "$DATA/go.json" '127.0.0.1:{port}'
}

table() {
    python3 - "$RESULTS" <<'PYTHON'
import json
import statistics
import sys

rows = {}
for line in open(sys.argv[1], encoding="utf-8"):
    entry = json.loads(line)
    rows.setdefault((entry["result"]["probe"], entry["server"]), []).append(entry["result"]["start_us"])
print("| first answer | median ms | least | of the rounds' medians |\n|---|---|---|---|")
for (probe, server), times in sorted(rows.items()):
    middle = sorted(time["p50"] / 1000 for time in times)
    least = min(time["min"] for time in times) / 1000
    print(f"| {probe}, {server} | {statistics.median(middle):.2f} | {least:.2f} "
          f"| {middle[0]:.2f} to {middle[-1]:.2f} |")
PYTHON
}

compile_driver
bench/peers/go/build.sh "$OUT" >"$OUT/go.build.log" 2>&1 || say "go is left out: $(tail -n 1 "$OUT/go.build.log")"
scripts/build "$BUILD" bench_store_bench >/dev/null
"$BUILD/bench/store_bench" "$DATA" 1 2 1000 >"$DATA/filled"
team >"$DATA/team.yaml"
export CRAWBL_MCP_SIGNING_KEY=$KEY
for round in $(seq "$ROUNDS"); do
    say "round $round of $ROUNDS"
    measure_weir
    measure_go
done
table
