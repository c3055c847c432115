//go:build tools

// Package tools names the programs that are built from this module's pinned versions.
package tools

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
	_ "google.golang.org/grpc/interop/client"
)
