#!/usr/bin/env bash
# build: the Go peers, at the versions of go.mod and of this file.
#
#   bench/peers/go/build.sh OUT      writes OUT/go
#
# The code that protoc makes of our contract stands beside a copy of the sources under OUT.
set -euo pipefail

mkdir -p "$1"
OUT=$(cd "$1" && pwd)
ROOT=$(cd "${BASH_SOURCE%/*}/../../.." && pwd)
GEN=1.36.12 GEN_GRPC=1.6.2 # protoc-gen-go, protoc-gen-go-grpc
SOURCE=$OUT/go-source

command -v go >/dev/null || { echo "peers: Go is missing; install version 1.26 or newer from go.dev" >&2; exit 1; }
newer=$(find "$ROOT/bench/peers/go" -newer "$OUT/go" 2>/dev/null || echo all)
[ -n "$newer" ] || exit 0
mkdir -p "$SOURCE/agentruntime"
cp "$ROOT"/bench/peers/go/{*.go,go.mod,go.sum} "$SOURCE/"
GOBIN=$OUT/bin go install "google.golang.org/protobuf/cmd/protoc-gen-go@v$GEN"
GOBIN=$OUT/bin go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v$GEN_GRPC"
mapping=Mruntime.proto=weir/bench/peers/agentruntime
PATH=$OUT/bin:$PATH protoc -I "$ROOT/proto/agentruntime/v1" \
    --go_out="$SOURCE/agentruntime" --go_opt="paths=source_relative,$mapping" \
    --go-grpc_out="$SOURCE/agentruntime" --go-grpc_opt="paths=source_relative,$mapping" runtime.proto
cd "$SOURCE"
go build -mod=readonly -o "$OUT/go" .
