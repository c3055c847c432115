// https_model: a model behind net/http; test/e2e/test_https.py says what it is asked for.
//
//	https_model CERTIFICATE KEY      prints its port, and ends with its input
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func answer(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Content string }
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	content := asked.Messages[len(asked.Messages)-1].Content
	word, _, _ := strings.Cut(content, " ")
	_, port, _ := net.SplitHostPort(r.RemoteAddr)
	pieces := []string{"hello ", "from ", port}
	if word == "long" {
		var count int
		fmt.Sscan(content[len("long "):], &count)
		pieces = make([]string, count)
		for i := range pieces {
			pieces[i] = strings.Repeat("x", 1000)
		}
	}
	if word == "take" {
		pieces = []string{fmt.Sprint(len(content))}
	}
	w.Header().Set("content-type", "text/event-stream")
	for _, piece := range pieces {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
		if len(pieces) < 10 {
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		if word == "cut" {
			panic(http.ErrAbortHandler)
		}
	}
	io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	panic(http.ServeTLS(listener, http.HandlerFunc(answer), os.Args[1], os.Args[2]))
}
