package process

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"

	"voicegw/internal/origin"
)

// DebugHandler serves profiles and a few numbers of this program. sessions
// returns the number of running sessions and may be called concurrently. pprof also registers its handlers with
// http.DefaultServeMux, which nothing serves.
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
		// A page in a browser on this machine can make a name of its own point here.
		if host, err := origin.ParseHost(r.Host); err != nil || !host.Loopback() {
			http.Error(w, "Ask for localhost or a loopback address.", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// vars are the numbers of GET /debug/vars. Sizes are in bytes.
type vars struct {
	Version    string `json:"version"`
	Sessions   int    `json:"sessions"`
	Goroutines int    `json:"goroutines"`
	HeapInuse  uint64 `json:"heap_inuse"`
	HeapAlloc  uint64 `json:"heap_alloc"`
	StackInuse uint64 `json:"stack_inuse"`
	Sys        uint64 `json:"sys"`
	GCs        uint32 `json:"gcs"`
	// RSS, Threads and FDs are the system's; 0 and -1 where it does not tell.
	RSS     int64 `json:"rss"`
	Threads int   `json:"threads"`
	FDs     int   `json:"fds"`
}

// serveVars answers GET /debug/vars. With gc=1 it collects garbage first and gives memory
// back to the system, so that what is left is what is held.
func serveVars(w http.ResponseWriter, r *http.Request, version string, sessions func() int) {
	if r.URL.Query().Get("gc") == "1" {
		// Twice, since what waits in a sync.Pool outlives one collection.
		runtime.GC()
		debug.FreeOSMemory() // which collects first
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
	// A client that is gone does not read its answer.
	_ = enc.Encode(v)
}
