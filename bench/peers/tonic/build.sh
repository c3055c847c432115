#!/usr/bin/env bash
# build: the Rust peer, at the versions of Cargo.lock.
#
#   bench/peers/tonic/build.sh OUT      writes OUT/tonic
set -euo pipefail

mkdir -p "$1"
OUT=$(cd "$1" && pwd)
ROOT=$(cd "${BASH_SOURCE%/*}/../../.." && pwd)

command -v cargo >/dev/null || { echo "peers: cargo is missing; install Rust 1.88 or newer from rustup.rs" >&2; exit 1; }
cd "$ROOT/bench/peers/tonic"
WEIR_PROTO=$ROOT/proto/agentruntime/v1 CARGO_TARGET_DIR=$OUT/tonic-target \
    cargo build --release --locked --quiet
cp "$OUT/tonic-target/release/tonic-peer" "$OUT/tonic"
