package process

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"

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

// vars is the answer of GET /debug/vars. Sizes are in bytes.
type vars struct {
	Version    string `json:"version"`
	Sessions   int    `json:"sessions"`
	Goroutines int    `json:"goroutines"`
	HeapInuse  uint64 `json:"heap_inuse"`
	HeapAlloc  uint64 `json:"heap_alloc"`
	StackInuse uint64 `json:"stack_inuse"`
	Sys        uint64 `json:"sys"`
	GCs        uint32 `json:"gcs"`
	// RSS and Threads are 0 and FDs is -1 where the system doesn't report them.
	RSS     int64 `json:"rss"`
	Threads int   `json:"threads"`
	FDs     int   `json:"fds"`
}

// serveVars answers GET /debug/vars. With gc=1 it first collects garbage and returns memory to the system, so that the
// answer shows what is still in use.
func serveVars(w http.ResponseWriter, r *http.Request, version string, sessions func() int) {
	if r.URL.Query().Get("gc") == "1" {
		// Twice: objects in a sync.Pool survive one collection.
		runtime.GC()
		debug.FreeOSMemory() // collects garbage first
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v := vars{
		Version: version, Sessions: sessions(), Goroutines: runtime.NumGoroutine(),
		HeapInuse: m.HeapInuse, HeapAlloc: m.HeapAlloc, StackInuse: m.StackInuse, Sys: m.Sys, GCs: m.NumGC, FDs: -1,
	}
	if u, err := Read(0); err == nil {
		v.RSS, v.Threads, v.FDs = u.RSS, u.Threads, u.FDs
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	// The client may be gone.
	_ = enc.Encode(v)
}
