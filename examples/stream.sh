#!/bin/sh
# One turn over HTTP, as server-sent events. The demo (make run) answers on 127.0.0.1:8080.
curl -N "${WEIR_URL:-127.0.0.1:8080}/stream" --json '{"input":"plan two days in Kyoto"}'
