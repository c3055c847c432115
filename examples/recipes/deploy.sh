# A service of its own: settings that are checked, a token, a start that says when it is ready, a
# health check, a change without a break, a stop in order. Nothing here needs root.
mkdir -p service
printf 'listen: {http: 127.0.0.1:0, grpc: off}\n' > service/weir.yaml
weir config check service/weir.yaml

export AGENT_AUTH_TOKEN=$(openssl rand -hex 32)
weir serve -c service/weir.yaml --data service/data --ports-file service/ports.json &
weir=$!
until [ -s service/ports.json ]; do sleep 0.1; done
port=$(tr -cd '0-9\n' < service/ports.json)

weir health --http "127.0.0.1:$port"
curl -s "127.0.0.1:$port/invoke" -o /dev/null -w '%{http_code}\n' --json '{"input":"hello"}'
curl -s "127.0.0.1:$port/invoke" -o /dev/null -w '%{http_code}\n' --json '{"input":"hello"}' \
    -H "authorization: Bearer $AGENT_AUTH_TOKEN"
kill -HUP $weir
kill -TERM $weir
wait $weir
