// Rounds runs gRPC's own interop cases many times over one connection.
//
//	rounds -target 127.0.0.1:1234 -rounds 100          the 14 cases, in turn
//	rounds -target 127.0.0.1:1234 -storm 1000          so many large calls at once
//
// The cases end the program when they fail.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

func cases(ctx context.Context, conn *grpc.ClientConn) []func() {
	client := testgrpc.NewTestServiceClient(conn)
	stranger := testgrpc.NewUnimplementedServiceClient(conn)
	return []func(){
		func() { interop.DoEmptyUnaryCall(ctx, client) },
		func() { interop.DoLargeUnaryCall(ctx, client) },
		func() { interop.DoClientStreaming(ctx, client) },
		func() { interop.DoServerStreaming(ctx, client) },
		func() { interop.DoPingPong(ctx, client) },
		func() { interop.DoEmptyStream(ctx, client) },
		func() { interop.DoCancelAfterBegin(ctx, client) },
		func() { interop.DoCancelAfterFirstResponse(ctx, client) },
		func() { interop.DoTimeoutOnSleepingServer(ctx, client) },
		func() { interop.DoCustomMetadata(ctx, client) },
		func() { interop.DoStatusCodeAndMessage(ctx, client) },
		func() { interop.DoSpecialStatusMessage(ctx, client) },
		func() { interop.DoUnimplementedMethod(ctx, conn) },
		func() { interop.DoUnimplementedService(ctx, stranger) },
	}
}

func storm(ctx context.Context, conn *grpc.ClientConn, count int) {
	client := testgrpc.NewTestServiceClient(conn)
	var all sync.WaitGroup
	for range count {
		all.Add(1)
		go func() {
			defer all.Done()
			interop.DoLargeUnaryCall(ctx, client)
		}()
	}
	all.Wait()
	fmt.Printf("%d large calls at once over one connection\n", count)
}

func main() {
	target := flag.String("target", "", "host:port")
	rounds := flag.Int("rounds", 0, "how often to run the cases")
	calls := flag.Int("storm", 0, "how many large calls to make at once")
	flag.Parse()
	conn, err := grpc.NewClient("passthrough:///"+*target,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx := context.Background()
	passed := 0
	for range *rounds {
		for _, run := range cases(ctx, conn) {
			run()
			passed++
		}
	}
	if *rounds > 0 {
		fmt.Printf("%d cases passed over one connection\n", passed)
	}
	if *calls > 0 {
		storm(ctx, conn, *calls)
	}
}
