package main

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// Bytes as they are: an event is encoded once for everyone.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "raw" }

// A message as large as weir's event.
var event = make([]byte, 147)

type apps struct {
	lock        sync.Mutex
	subscribers map[chan []byte]struct{}
}

func (a *apps) subscribe(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	events := make(chan []byte, 32)
	a.lock.Lock()
	a.subscribers[events] = struct{}{}
	a.lock.Unlock()
	defer func() {
		a.lock.Lock()
		delete(a.subscribers, events)
		a.lock.Unlock()
	}()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case bytes := <-events:
			if err := stream.SendMsg(bytes); err != nil {
				return err
			}
		}
	}
}

// A subscriber whose channel is full would miss the event; the driver never lets it fill.
func (a *apps) send(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var request []byte
	if err := decode(&request); err != nil {
		return nil, err
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	for events := range a.subscribers {
		select {
		case events <- event:
		default:
		}
	}
	return []byte{}, nil
}

func serveFanout(listener net.Listener) error {
	a := &apps{subscribers: map[chan []byte]struct{}{}}
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxConcurrentStreams(1<<20),
		grpc.WriteBufferSize(128<<10),
		grpc.ReadBufferSize(128<<10),
		grpc.SharedWriteBuffer(true),
	)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "nimi.runtime.v1.RuntimeAppService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "SendAppMessage", Handler: a.send}},
		Streams: []grpc.StreamDesc{{StreamName: "SubscribeAppMessages", ServerStreams: true,
			Handler: a.subscribe}},
	}, a)
	return server.Serve(listener)
}
