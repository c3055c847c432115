package main

import (
	"encoding/json"
	"net"
	"net/http"
)

func healthPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"status":"healthy","agent_name":"bench","version":"0.1.0"}`))
}

type invokeRequest struct {
	Input     string `json:"input"`
	SessionID string `json:"session_id"`
}

type invokeAnswer struct {
	Output    string `json:"output"`
	SessionID string `json:"session_id"`
}

func invoke(w http.ResponseWriter, r *http.Request) {
	var request invokeRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(invokeAnswer{Output: "ok", SessionID: request.SessionID})
}

func serveHTTP(listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", healthPage)
	mux.HandleFunc("POST /invoke", invoke)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Handler: mux, Protocols: protocols,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1 << 16}}
	return server.Serve(listener)
}
