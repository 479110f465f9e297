// Package process reports a process's resource usage (from /proc on Linux and from a Go program's debug address), serves
// that debug address, starts other programs, notifies the service manager, and watches files that are replaced at run time.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/internal/origin"
)

// DebugHandler serves profiles and runtime statistics of this process. sessions returns the number of running sessions
// and may be called concurrently. Importing pprof also registers its handlers with http.DefaultServeMux, which must stay
// unserved.
func DebugHandler(version string, sessions func() int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, r *http.Request) { serveVars(w, r, version, sessions) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Against DNS rebinding: a web page can make its own host name resolve to this address.
		if host, err := origin.ParseHost(r.Host); err != nil || !host.Loopback() {
			http.Error(w, "Use localhost or a loopback address.", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Vars is the answer of a voicegw process at its debug address. Sizes are in bytes.
type Vars struct {
	Version    string `json:"version"`
	Sessions   int    `json:"sessions"`
	Goroutines int64  `json:"goroutines"`
	HeapInuse  uint64 `json:"heap_inuse"`
	// HeapAlloc is the size of heap objects. Resident memory also has the gaps between them.
	HeapAlloc  int64  `json:"heap_alloc"`
	StackInuse uint64 `json:"stack_inuse"`
	Sys        uint64 `json:"sys"`
	GCs        uint32 `json:"gcs"`
	// RSS and Threads are 0 and FDs is -1 where the system doesn't report them.
	RSS     int64 `json:"rss"`
	Threads int   `json:"threads"`
	FDs     int64 `json:"fds"`
}

// serveVars answers GET /debug/vars. With gc=1 it first collects garbage and returns memory to the system, so that the
// answer shows live memory only.
func serveVars(w http.ResponseWriter, r *http.Request, version string, sessions func() int) {
	if r.URL.Query().Get("gc") == "1" {
		// Twice: objects in a sync.Pool survive one collection.
		runtime.GC()
		debug.FreeOSMemory() // collects garbage first
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v := Vars{
		Version: version, Sessions: sessions(), Goroutines: int64(runtime.NumGoroutine()),
		HeapInuse: m.HeapInuse, HeapAlloc: int64(m.HeapAlloc), StackInuse: m.StackInuse, Sys: m.Sys, GCs: m.NumGC, FDs: -1,
	}
	if u, err := Read(0); err == nil {
		v.RSS, v.Threads, v.FDs = u.RSS, u.Threads, int64(u.FDs)
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	// The client may be gone.
	_ = enc.Encode(v)
}

var varsLimits = bounded.Limits{Service: "the gateway's debug address", Format: bounded.JSON, Bytes: 4 << 20}

// ReadVars asks a voicegw process with --debug-listen at base, such as http://127.0.0.1:6060. With collect the process
// first collects garbage and returns unused memory to the system.
func ReadVars(ctx context.Context, client *http.Client, base string, collect bool) (Vars, error) {
	url := strings.TrimSuffix(base, "/") + "/debug/vars"
	if collect {
		url += "?gc=1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Vars{}, fmt.Errorf("ask %s: %w", base, err)
	}
	resp, err := bounded.Client(client, varsLimits).Do(r)
	if err != nil {
		return Vars{}, fmt.Errorf("ask for the debug values: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Vars{}, fmt.Errorf("ask for the debug values: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Vars{}, fmt.Errorf("ask for the debug values: %s answers %s", base, resp.Status)
	}
	return parseVars(body)
}

func parseVars(body []byte) (Vars, error) {
	v := Vars{Goroutines: -1}
	if err := json.Unmarshal(body, &v); err != nil {
		return Vars{}, fmt.Errorf("invalid debug values: %w", err)
	}
	if v.Goroutines < 0 {
		return Vars{}, errors.New("the debug values have no goroutines: check that the URL is the --debug-listen address of a voicegw")
	}
	return v, nil
}

// Usage is a process's resource usage.
type Usage struct {
	// CPU is the user and system time over all cores.
	CPU time.Duration
	// RSS is the resident memory in bytes.
	RSS     int64
	Threads int
	// FDs is the number of open descriptors; -1 without permission.
	FDs int
}
