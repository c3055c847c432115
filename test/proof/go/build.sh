#!/usr/bin/env bash
# build: the Go programs that the proofs meet us with, at the versions of go.mod.
#
#   test/proof/go/build.sh     writes build/go/{interop_client,h2spec,rounds,https_model}
set -euo pipefail

if ! command -v go >/dev/null; then
    echo "proof: Go is missing; install version 1.26 or newer from go.dev" >&2
    exit 1
fi
mkdir -p "${BUILD:-build}/go"
out=$(cd "${BUILD:-build}/go" && pwd)
cd "${BASH_SOURCE%/*}"
go build -mod=readonly -o "$out/interop_client" google.golang.org/grpc/interop/client
go build -mod=readonly -o "$out/h2spec" github.com/summerwind/h2spec/cmd/h2spec
go build -mod=readonly -o "$out/rounds" ./rounds
go build -mod=readonly -o "$out/https_model" ./https_model
