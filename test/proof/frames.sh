#!/usr/bin/env bash
# frames: what no well-behaved gRPC client does, see test/proof/grpc/frames.py.
set -euo pipefail
BUILD=${BUILD:-build}
exec "$BUILD/venv/bin/python" test/proof/grpc/frames.py "$@"
