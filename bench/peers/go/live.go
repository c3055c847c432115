package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// So that an event is as long as weir's, which has a time and ids.
var liveTail = strings.Repeat(".", 43)

// One live stream for many readers: each has a channel of 256 events, which were encoded once. A reader
// whose channel is full misses the event.
type liveEvents struct {
	lock    sync.Mutex
	readers map[chan []byte]struct{}
}

func (l *liveEvents) publish(event []byte) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for events := range l.readers {
		select {
		case events <- event:
		default:
		}
	}
}

func (l *liveEvents) run(rate int) {
	every := time.Second / time.Duration(rate)
	due := time.Now()
	for seq := 1; ; seq++ {
		due = due.Add(every)
		time.Sleep(time.Until(due))
		l.publish(fmt.Appendf(nil, "event: text\nid: 1-%d\ndata: {\"seq\":%d,\"text\":\"%08d the water goes on "+
			"over the weir, to the mill, to sea...%s\"}\n\n", seq, seq, seq, liveTail))
	}
}

func (l *liveEvents) serve(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 256)
	l.lock.Lock()
	l.readers[events] = struct{}{}
	l.lock.Unlock()
	defer func() {
		l.lock.Lock()
		delete(l.readers, events)
		l.lock.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher)
	flush.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			if _, err := w.Write(event); err != nil {
				return
			}
			// What waits leaves together.
			for waiting := len(events); waiting > 0; waiting-- {
				w.Write(<-events)
			}
			flush.Flush()
		}
	}
}

// BENCH_RATE says how many events a second.
func serveLive(listener net.Listener) error {
	rate, err := strconv.Atoi(os.Getenv("BENCH_RATE"))
	if err != nil || rate < 1 {
		return fmt.Errorf("BENCH_RATE must be a number of events a second")
	}
	l := &liveEvents{readers: map[chan []byte]struct{}{}}
	go l.run(rate)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", healthPage)
	mux.HandleFunc("GET /events", l.serve)
	return http.Serve(listener, mux)
}
