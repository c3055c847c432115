// go: the same work from Go's own servers, to compare with.
//
//	go converse PORTS_FILE    the driver's turns, by grpc-go
//	go fanout PORTS_FILE      one message to every subscriber, by grpc-go
//	go live PORTS_FILE        one live stream of events for all readers, BENCH_RATE events a second
//	go http PORTS_FILE        GET /health, and POST /invoke that parses and answers
//	go chat PORTS_FILE        POST /v1/chat/completions, asked of the model at OPENAI_BASE_URL
//
// An ADDRESS after the file is listened on; without one, a free port of the loopback interface.
//
// grpc-go has what its documentation offers for speed: a pool of stream workers, large and
// shared write buffers, windows that a burst fits into, no compression. The events of the
// unpaced turn are built once for the whole process. Neither server checks a token, keeps a
// session or writes to disk; comparisons favour them.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func listen(address string) (net.Listener, int, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, 0, err
	}
	return listener, listener.Addr().(*net.TCPAddr).Port, nil
}

// The file appears whole: whoever waits for it may read it at once.
func writePorts(path, name string, port int) error {
	text := fmt.Sprintf("{\"%s\": %d}\n", name, port)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func run(mode, portsFile, address string) error {
	listener, port, err := listen(address)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	serve, name := serveConverse, "grpc"
	switch mode {
	case "http":
		serve, name = serveHTTP, "http"
	case "chat":
		serve, name = serveChat, "http"
	case "live":
		serve, name = serveLive, "http"
	case "fanout":
		serve = serveFanout
	}
	failed := make(chan error, 1)
	go func() { failed <- serve(listener) }()
	if err := writePorts(portsFile, name, port); err != nil {
		return err
	}
	select {
	case <-stop:
		return nil
	case err := <-failed:
		return err
	}
}

func main() {
	modes := []string{"chat", "converse", "fanout", "http", "live"}
	if len(os.Args) < 3 || len(os.Args) > 4 || !slices.Contains(modes, os.Args[1]) {
		fmt.Fprintln(os.Stderr, "go: chat|converse|fanout|http|live PORTS_FILE [ADDRESS]")
		os.Exit(2)
	}
	address := "127.0.0.1:0"
	if len(os.Args) == 4 {
		address = os.Args[3]
	}
	if err := run(os.Args[1], os.Args[2], address); err != nil {
		fmt.Fprintln(os.Stderr, "go:", err)
		os.Exit(1)
	}
}
