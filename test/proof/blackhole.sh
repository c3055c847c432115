#!/usr/bin/env bash
# blackhole: a peer that vanishes in the middle of a turn, see test/proof/grpc/blackhole.py.
set -euo pipefail
BUILD=${BUILD:-build}
exec "$BUILD/venv/bin/python" test/proof/grpc/blackhole.py
