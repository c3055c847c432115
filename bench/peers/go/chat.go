package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// The least that a gateway of Chat Completions does: it reads the request and each chunk of the model's
// answer, and writes chunks of its own.

type chatRequest struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
}

type chatDelta struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type chatChoice struct {
	Index        int       `json:"index"`
	Delta        chatDelta `json:"delta"`
	FinishReason *string   `json:"finish_reason"`
}

type chatChunk struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
}

type chatServer struct {
	model  string // the address of the model
	client *http.Client
}

func (s *chatServer) ask(r *http.Request, request *chatRequest) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	asked, err := http.NewRequestWithContext(r.Context(), "POST", s.model+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Content-Type", "application/json")
	return s.client.Do(asked)
}

func pass(w http.ResponseWriter, answer io.Reader, created int64) {
	flush := w.(http.Flusher)
	lines := bufio.NewScanner(answer)
	encoder := json.NewEncoder(w) // it ends each with a line break
	for lines.Scan() {
		data, found := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !found {
			continue
		}
		if bytes.Equal(data, []byte("[DONE]")) {
			io.WriteString(w, "data: [DONE]\n\n")
			flush.Flush()
			return
		}
		var chunk chatChunk
		if json.Unmarshal(data, &chunk) != nil {
			return
		}
		chunk.ID, chunk.Object, chunk.Created = "chatcmpl-1", "chat.completion.chunk", created
		io.WriteString(w, "data: ")
		encoder.Encode(&chunk)
		io.WriteString(w, "\n")
		flush.Flush()
	}
}

func (s *chatServer) serve(w http.ResponseWriter, r *http.Request) {
	var request chatRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.ask(r, &request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.(http.Flusher).Flush()
	pass(w, answer.Body, time.Now().Unix())
}

// The address of the model is in the environment, as the official libraries expect it.
func serveChat(listener net.Listener) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4096
	transport.Proxy = nil
	s := &chatServer{model: os.Getenv("OPENAI_BASE_URL"), client: &http.Client{Transport: transport}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	return http.Serve(listener, mux)
}
