// A server that commits one row to SQLite for each POST /invoke before it answers: what a short
// durable turn costs without a runtime around it. Requests that wait share a commit.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	_ "github.com/mattn/go-sqlite3"
)

const groupMax = 2048

type row struct {
	session, input string
	done           chan error
}

var rows = make(chan row, groupMax)

// commit writes the rows that wait in one transaction, synced.
func commit(db *sql.DB, insert *sql.Stmt, group []row) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	statement := tx.Stmt(insert)
	for _, one := range group {
		if _, err := statement.Exec(one.session, one.input); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func write(db *sql.DB, insert *sql.Stmt) {
	group := make([]row, 0, groupMax)
	for {
		group = append(group[:0], <-rows)
		for len(group) < groupMax && len(rows) > 0 {
			group = append(group, <-rows)
		}
		err := commit(db, insert, group)
		for _, one := range group {
			one.done <- err
		}
	}
}

type request struct {
	Input     string `json:"input"`
	SessionID string `json:"session_id"`
}

type answer struct {
	Output    string `json:"output"`
	SessionID string `json:"session_id"`
}

func invoke(w http.ResponseWriter, r *http.Request) {
	var asked request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	one := row{asked.SessionID, asked.Input, make(chan error, 1)}
	rows <- one
	if err := <-one.done; err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer{Output: "ok", SessionID: asked.SessionID})
}

// The file appears whole: whoever waits for it may read it at once.
func writePorts(path string, port int) error {
	text := fmt.Sprintf("{\"http\": %d}\n", port)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// go_sqlite PORTS_FILE DATABASE: listens on a free port, and writes {"http": PORT} to the file.
func main() {
	db, err := sql.Open("sqlite3", "file:"+os.Args[2]+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err = db.Exec("CREATE TABLE turn(id INTEGER PRIMARY KEY, session TEXT, input TEXT)"); err != nil {
		log.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO turn(session, input) VALUES(?, ?)")
	if err != nil {
		log.Fatal(err)
	}
	go write(db, insert)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := writePorts(os.Args[1], listener.Addr().(*net.TCPAddr).Port); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /invoke", invoke)
	log.Fatal(http.Serve(listener, nil))
}
