//go:build probe

// This file is added to cmd/voicegw (go build -tags probe -overlay) for the comparison
// bench: it lets the bench look into the program that it measures, which is otherwise
// the shipped one.
package main

import (
	"encoding/json"
	"net"
	"net/http"
	_ "net/http/pprof" // profiles of a gateway under load
	"os"
	"runtime"
	"runtime/debug"
)

// init serves the probe on the Unix socket that RELAYBENCH_PROBE names.
func init() {
	path := os.Getenv("RELAYBENCH_PROBE")
	if path == "" {
		return
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/now", tellMemory)
	http.HandleFunc("/settled", func(w http.ResponseWriter, r *http.Request) {
		debug.FreeOSMemory()
		tellMemory(w, r)
	})
	go func() { panic(http.Serve(ln, nil)) }()
}

func tellMemory(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_ = json.NewEncoder(w).Encode(map[string]any{"Mallocs": m.Mallocs, "Goroutines": runtime.NumGoroutine()})
}
