package main

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	pb "weir/bench/peers/agentruntime"
)

const (
	chunks = 64
	tail   = " the water goes on over the weir, to the mill, to sea..."
	pace   = 20 * time.Millisecond
)

func chunk(text string) *pb.ConverseEvent {
	return &pb.ConverseEvent{Event: &pb.ConverseEvent_Chunk{
		Chunk: &pb.ChunkEvent{AgentId: "manager", Text: text}}}
}

func ending(text string) []*pb.ConverseEvent {
	return []*pb.ConverseEvent{
		{Event: &pb.ConverseEvent_Usage{Usage: &pb.UsageEvent{AgentId: "manager",
			Model: "script", PromptTokens: 10, CompletionTokens: 64, TotalTokens: 74}}},
		{Event: &pb.ConverseEvent_Done{Done: &pb.DoneEvent{Model: "script",
			Turns: []*pb.Turn{{AgentId: "manager", Text: text}}}}},
	}
}

// The unpaced turn, the same for everyone.
var burst = func() []*pb.ConverseEvent {
	var events []*pb.ConverseEvent
	var whole strings.Builder
	for n := 0; n < chunks; n++ {
		text := fmt.Sprintf("%08d%s", n, tail)
		whole.WriteString(text)
		events = append(events, chunk(text))
	}
	return append(events, ending(whole.String())...)
}()

type converse struct {
	pb.UnimplementedAgentRuntimeServer
}

type stream = grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseEvent]

// prepare gives the unpaced turn as bytes, which grpc-go makes for one stream at a time.
func prepare(to stream) ([]*grpc.PreparedMsg, error) {
	messages := make([]*grpc.PreparedMsg, len(burst))
	for i, event := range burst {
		messages[i] = new(grpc.PreparedMsg)
		if err := messages[i].Encode(to, event); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

func sendPrepared(to stream, messages []*grpc.PreparedMsg) error {
	for _, message := range messages {
		if err := to.SendMsg(message); err != nil {
			return err
		}
	}
	return nil
}

func sendAll(to stream, events []*pb.ConverseEvent) error {
	for _, event := range events {
		if err := to.Send(event); err != nil {
			return err
		}
	}
	return nil
}

// One chunk each `pace`, with its number and when it was sent.
func sendPaced(to stream, count int) error {
	var whole strings.Builder
	due := time.Now()
	for n := 0; n < count; n++ {
		if n > 0 {
			due = due.Add(pace)
			time.Sleep(time.Until(due))
		}
		text := fmt.Sprintf("%08d %019d", n, time.Now().UnixMicro())
		text += strings.Repeat(".", 64-len(text))
		whole.WriteString(text)
		if err := to.Send(chunk(text)); err != nil {
			return err
		}
	}
	return sendAll(to, ending(whole.String()))
}

func (converse) Converse(to stream) error {
	var messages []*grpc.PreparedMsg
	for {
		request, err := to.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if paced, found := strings.CutPrefix(request.Message, "paced "); found {
			count, err := strconv.Atoi(paced)
			if err != nil {
				return err
			}
			err = sendPaced(to, count)
			if err != nil {
				return err
			}
			continue
		}
		if messages == nil {
			if messages, err = prepare(to); err != nil {
				return err
			}
		}
		if err := sendPrepared(to, messages); err != nil {
			return err
		}
	}
}

func serveConverse(listener net.Listener) error {
	server := grpc.NewServer(
		grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))),
		grpc.WriteBufferSize(256<<10),
		grpc.SharedWriteBuffer(true),
		grpc.InitialWindowSize(1<<20),
		grpc.InitialConnWindowSize(16<<20),
		grpc.MaxConcurrentStreams(1<<20))
	pb.RegisterAgentRuntimeServer(server, converse{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server.Serve(listener)
}
