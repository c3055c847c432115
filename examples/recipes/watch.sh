# Take a turn, read it once more from the outside, and count what happened.
# WEIR_URL and WEIR_ADMIN say where a running weir listens, AGENT_AUTH_TOKEN is its token.
url=http://${WEIR_URL:-127.0.0.1:8080} admin=http://${WEIR_ADMIN:-127.0.0.1:9464}
token="authorization: Bearer $AGENT_AUTH_TOKEN"
run=$(curl -s -D - -o answer.json -H "$token" "$url/invoke" --json '{"input":"plan two days in Kyoto"}' |
    tr -d '\r' | sed -n 's/^x-weir-run-id: //p')
curl -s -H "$token" "$url/weir/v1/runs/$run"         # what it is and how it ended
curl -sN -H "$token" "$url/weir/v1/runs/$run/events" # everything that happened in it, in order
curl -s "$admin/metrics" | grep '^weir_' # what Prometheus reads
