// What bench/sidecar.sh measures with: an agent, Go's own reverse proxy, and drivers.
//
//	proxy agent FILE               an agent; its port is written to FILE
//	proxy reverse FILE URL         httputil.ReverseProxy in front of URL
//	proxy invoke URL N SECONDS     N callers of POST /invoke, one turn after the other
//	proxy stream URL N EVENTS MS   N streams at once, an event each MS milliseconds
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

type turn struct {
	Input  string `json:"input"`
	Events int    `json:"events"`
	Every  int    `json:"every"`
}

func invoke(w http.ResponseWriter, r *http.Request) {
	var t turn
	if json.NewDecoder(r.Body).Decode(&t) != nil {
		http.Error(w, `{"detail":"no JSON"}`, 400)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"output": "you said: " + t.Input, "metadata": map[string]any{}})
}

func stream(w http.ResponseWriter, r *http.Request) {
	var t turn
	json.NewDecoder(r.Body).Decode(&t)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher)
	flush.Flush()
	for i := 0; i < t.Events; i++ {
		if t.Every > 0 {
			time.Sleep(time.Duration(t.Every) * time.Millisecond)
		}
		fmt.Fprintf(w, "data: {\"delta\":\"word %d of the answer. \"}\n\n", i)
		flush.Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func serve(file string, handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	os.WriteFile(file+".new", []byte(strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)), 0o600)
	os.Rename(file+".new", file)
	panic(http.Serve(listener, handler))
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10000}}

func post(address string, t turn) *http.Response {
	body, _ := json.Marshal(t)
	request, _ := http.NewRequest("POST", address, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer bench")
	response, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	if response.StatusCode != 200 {
		panic(response.Status)
	}
	return response
}

func driveInvoke(address string, callers, seconds int) {
	var all []time.Duration
	var lock sync.Mutex
	var wait sync.WaitGroup
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for range callers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var own []time.Duration
			for time.Now().Before(end) {
				began := time.Now()
				response := post(address+"/invoke", turn{Input: "hello there, how are you today?"})
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				own = append(own, time.Since(began))
			}
			lock.Lock()
			all = append(all, own...)
			lock.Unlock()
		}()
	}
	wait.Wait()
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	fmt.Printf("%d %d %d\n", len(all), all[len(all)/2].Microseconds(), all[len(all)*99/100].Microseconds())
}

func driveStream(address string, streams, events, every int) {
	var wait sync.WaitGroup
	var lock sync.Mutex
	total := 0
	for range streams {
		wait.Add(1)
		go func() {
			defer wait.Done()
			response := post(address+"/stream", turn{Input: "x", Events: events, Every: every})
			lines, seen, done := bufio.NewScanner(response.Body), 0, false
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "data: {\"delta\"") {
					seen++
				}
				done = done || lines.Text() == "data: [DONE]"
			}
			response.Body.Close()
			if seen < events || !done {
				panic(fmt.Sprint("a stream brought ", seen, " of ", events, " events"))
			}
			lock.Lock()
			total += seen
			lock.Unlock()
		}()
	}
	wait.Wait()
	fmt.Println(total)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	args := os.Args[1:]
	switch args[0] {
	case "agent":
		mux := http.NewServeMux()
		mux.HandleFunc("/invoke", invoke)
		mux.HandleFunc("/stream", stream)
		mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"status":"healthy"}`) })
		serve(args[1], mux)
	case "reverse":
		target, _ := url.Parse(args[2])
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		serve(args[1], proxy)
	case "invoke":
		driveInvoke(args[1], number(args[2]), number(args[3]))
	case "stream":
		driveStream(args[1], number(args[2]), number(args[3]), number(args[4]))
	}
}
